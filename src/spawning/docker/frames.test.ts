import { expect, test } from 'vitest';
import { createFrameReader } from './frames.ts';

function frame(stream: number, content: string): Buffer {
  const header = Buffer.alloc(8);
  header[0] = stream;
  header.writeUInt32BE(Buffer.byteLength(content), 4);
  return Buffer.concat([header, Buffer.from(content)]);
}

const bytes = Buffer.concat([frame(1, 'out'), frame(2, 'err'), frame(1, ''), frame(1, 'end')]);

test.for([1, 2, 3, 7, 8, 9, 64])('frames are read in pieces of %i bytes', (size) => {
  const read = { stdout: '', stderr: '' };
  const reader = createFrameReader((content, stream) => {
    read[stream] += Buffer.from(content).toString();
  });
  for (let at = 0; at < bytes.length; at += size) reader.push(bytes.subarray(at, at + size));
  expect(read).toEqual({ stdout: 'outend', stderr: 'err' });
});

test('ten thousand frames in one piece are no deeper than one', () => {
  let lines = 0;
  const reader = createFrameReader(() => {
    lines += 1;
  });
  reader.push(Buffer.concat(Array.from({ length: 10_000 }, () => frame(1, 'y\n'))));
  expect(lines).toBe(10_000);
});
