/** Takes the bytes of a container's output apart. */
export interface FrameReader {
  push(chunk: Uint8Array): void;
}

const headerBytes = 8;
const streams = { 1: 'stdout', 2: 'stderr' } as const;

/**
 * Reads the multiplexed stream of a container without a terminal: frames of eight bytes, which are the stream,
 * three zeros and the length (big endian), and then the content (Docker Engine API, ContainerAttach). Content
 * is passed on as it comes, so that no frame, however long, is kept.
 */
export function createFrameReader(
  onContent: (content: Uint8Array, stream: 'stdout' | 'stderr') => void,
): FrameReader {
  const header = Buffer.alloc(headerBytes);
  let headerFilled = 0;
  let left = 0;
  let stream: 'stdout' | 'stderr' = 'stdout';

  return {
    push(chunk) {
      for (let at = 0; at < chunk.length; ) {
        if (left > 0) {
          const end = Math.min(at + left, chunk.length);
          onContent(chunk.subarray(at, end), stream);
          left -= end - at;
          at = end;
          continue;
        }
        header[headerFilled] = chunk[at] ?? 0;
        headerFilled += 1;
        at += 1;
        if (headerFilled < headerBytes) continue;
        headerFilled = 0;
        left = header.readUInt32BE(4);
        stream = header[0] === 2 ? streams[2] : streams[1];
      }
    },
  };
}
