/** A snapshot of ten thousand routes is a few megabytes. */
const maxEventLength = 64 * 1024 * 1024;

/**
 * The data of server-sent events, as `api/event-stream.ts` writes them: one line each. Throws for an event without
 * end. `onBytes` is called whenever anything comes.
 */
export async function* readEvents(
  body: AsyncIterable<Uint8Array>,
  onBytes: () => void,
): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let pieces: string[] = [];
  let length = 0;
  for await (const bytes of body) {
    onBytes();
    const lines = decoder.decode(bytes, { stream: true }).split('\n');
    for (const [index, line] of lines.entries()) {
      pieces.push(line);
      length += line.length;
      if (length > maxEventLength) throw new Error('an event of the feed has no end');
      if (index === lines.length - 1) break;
      const whole = pieces.join('');
      pieces = [];
      length = 0;
      if (whole.startsWith('data: ')) yield whole.slice('data: '.length);
    }
  }
}
