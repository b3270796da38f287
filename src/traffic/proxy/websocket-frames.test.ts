import { expect, test } from 'vitest';
import { closeFrame, FrameBoundary } from './websocket-frames.ts';

const frame = (length: number, isMasked = false) => {
  const extended = length > 0xffff ? 8 : length > 125 ? 2 : 0;
  const bytes = Buffer.alloc(2 + extended + (isMasked ? 4 : 0) + length, 0xff);
  bytes[0] = 0x82;
  bytes[1] = (isMasked ? 0x80 : 0) | (extended === 8 ? 127 : extended === 2 ? 126 : length);
  if (extended === 2) bytes.writeUInt16BE(length, 2);
  if (extended === 8) bytes.writeBigUInt64BE(BigInt(length), 2);
  return bytes;
};

test.for([0, 1, 125, 126, 65_535, 65_536, 70_000])(
  'finds the end of a frame of %i bytes',
  (length) => {
    for (const isMasked of [false, true]) {
      const bytes = frame(length, isMasked);
      const boundary = new FrameBoundary();
      expect(boundary.isBetweenFrames).toBe(true);
      boundary.push(bytes.subarray(0, -1));
      expect(boundary.isBetweenFrames).toBe(false);
      boundary.push(bytes.subarray(-1));
      expect(boundary.isBetweenFrames).toBe(true);
    }
  },
);

test('finds the end however the frames are cut into chunks', () => {
  const stream = Buffer.concat([frame(3), frame(300), frame(0), frame(70_000, true), frame(5)]);
  for (const size of [1, 2, 3, 7, 1_000, stream.length]) {
    const boundary = new FrameBoundary();
    for (let index = 0; index < stream.length; index += size) {
      boundary.push(stream.subarray(index, index + size));
      const isLast = index + size >= stream.length;
      if (isLast) expect(boundary.isBetweenFrames).toBe(true);
    }
    boundary.push(frame(9).subarray(0, 1));
    expect(boundary.isBetweenFrames).toBe(false);
  }
});

test('writes a close frame as RFC 6455 §5.5.1 has it', () => {
  expect([...closeFrame(1001, 'bye')]).toEqual([0x88, 5, 0x03, 0xe9, 0x62, 0x79, 0x65]);
  expect(closeFrame(1001, 'x'.repeat(500))).toHaveLength(127);
});

test('tells frames with data from pings, pongs and closes', () => {
  const control = [0x88, 0x89, 0x8a].map((opcode) => {
    const bytes = frame(5, true);
    bytes[0] = opcode;
    return bytes;
  });
  const boundary = new FrameBoundary();
  for (const each of control) boundary.push(each);
  expect(boundary.hasData).toBe(false);
  boundary.push(Buffer.concat([...control, frame(1, true)]));
  expect(boundary.hasData).toBe(true);
});
