import { describe, expect, test } from 'vitest';
import { createLineSplitter } from './output-lines.ts';

const bytes = (text: string): Uint8Array => Buffer.from(text);

describe('the line splitter', () => {
  test('joins what arrives in pieces, also in the middle of a character', () => {
    const splitter = createLineSplitter();
    const text = bytes('grüße\nzweite');
    expect(splitter.push(text.subarray(0, 3))).toEqual([]);
    expect(splitter.push(text.subarray(3))).toEqual(['grüße']);
    expect(splitter.end()).toEqual(['zweite']);
    expect(splitter.end()).toEqual([]);
  });

  test('cuts a line that is too long and finds the next one', () => {
    const splitter = createLineSplitter();
    expect(splitter.push(bytes('x'.repeat(3_000)))).toEqual([]);
    expect(splitter.push(bytes('x'.repeat(3_000)))).toEqual([]);
    const [long, next] = splitter.push(bytes('x\nnext\n'));
    expect(long).toBe(`${'x'.repeat(4_096)}…`);
    expect(next).toBe('next');
  });

  test('keeps a line of just the greatest length whole', () => {
    const line = 'y'.repeat(4_096);
    expect(createLineSplitter().push(bytes(`${line}\n`))).toEqual([line]);
  });

  test('removes terminal sequences and control characters', () => {
    const splitter = createLineSplitter();
    const lines = splitter.push(bytes('\u001b[31mred\u001b[0m\r\n\u001b]0;title\u0007a\0b\tc\n'));
    expect(lines).toEqual(['red', 'ab\tc']);
  });
});
