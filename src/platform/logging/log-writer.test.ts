import { expect, onTestFinished, test, vi } from 'vitest';
import { createLogWriter, type LogOutput } from './log-writer.ts';

/** An output that does what it is told: takes some bytes, fails, or keeps its writer waiting. */
function createOutput() {
  let failure: string | undefined;
  let failures = 0;
  let waiting: (() => void) | undefined;
  let maxBytes = Number.POSITIVE_INFINITY;
  let isHeld = false;
  const written: Buffer[] = [];
  const output: LogOutput = (bytes, done) => {
    const answer = () => {
      if (failure !== undefined) {
        failures += 1;
        return done(Object.assign(new Error(failure), { code: failure }), 0);
      }
      const taken = bytes.subarray(0, maxBytes);
      written.push(Buffer.from(taken));
      done(null, taken.length);
    };
    if (isHeld) waiting = answer;
    else setImmediate(answer);
  };
  return {
    output,
    text: () => Buffer.concat(written).toString(),
    writes: () => written.length,
    failures: () => failures,
    fail: (code: string | undefined) => {
      failure = code;
    },
    takeAtMost: (bytes: number) => {
      maxBytes = bytes;
    },
    hold: () => {
      isHeld = true;
    },
    release: () => {
      isHeld = false;
      waiting?.();
      waiting = undefined;
    },
  };
}

function setUp(maxPendingChars?: number) {
  const output = createOutput();
  const dropped: number[] = [];
  const writer = createLogWriter({
    output: output.output,
    onResume: (lines) => dropped.push(lines),
    ...(maxPendingChars !== undefined && { maxPendingChars }),
  });
  return { output, writer, dropped };
}

test('lines of one turn are written together, in order', async () => {
  const { output, writer } = setUp();
  for (let line = 0; line < 100; line += 1) writer.write(`${line}\n`);
  expect(await writer.flush(10_000)).toBe(true);
  expect(output.text()).toBe(Array.from({ length: 100 }, (_, line) => `${line}\n`).join(''));
  expect(output.writes()).toBe(1);
});

test('the lines of a busy time go by few writes', async () => {
  const { output, writer } = setUp();
  vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  for (let passedMs = 0; passedMs < 300; passedMs += 1) {
    writer.write(`${passedMs}\n`);
    await new Promise(setImmediate);
    vi.advanceTimersByTime(1);
  }
  const flushed = writer.flush(10_000);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(await flushed).toBe(true);
  expect(output.text().match(/\n/g)).toHaveLength(300);
  expect(output.writes()).toBeLessThan(10);
});

test('a full batch is written without waiting for the next time', async () => {
  const { output, writer } = setUp();
  vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  writer.write('first\n');
  await expect.poll(() => output.writes()).toBe(1);
  const line = `${'x'.repeat(1_023)}\n`;
  for (let lines = 0; lines < 63; lines += 1) writer.write(line);
  await new Promise(setImmediate);
  expect(output.writes()).toBe(1);
  writer.write(line);
  await new Promise(setImmediate);
  expect(output.writes()).toBe(2);
  expect(output.text()).toBe(`first\n${line.repeat(64)}`);
  expect(vi.getTimerCount()).toBe(0);
});

test('tokens of the hub are masked, wherever they stand', async () => {
  const { output, writer } = setUp();
  const token = `hub_${'a-Z_9'.repeat(9).slice(0, 43)}`;
  writer.write(`{"url":"/hub/api/users/${token}/tokens","err":"x${token}x"}\n`);
  writer.write('{"user":"hub_admin"}\n');
  await writer.flush(10_000);
  expect(output.text()).toBe(
    '{"url":"/hub/api/users/[token]/tokens","err":"x[token]x"}\n{"user":"hub_admin"}\n',
  );
});

test('what an output takes in pieces arrives whole', async () => {
  const { output, writer } = setUp();
  output.takeAtMost(3);
  writer.write('größer\n');
  writer.write('kleiner\n');
  await writer.flush(10_000);
  expect(output.text()).toBe('größer\nkleiner\n');
  expect(output.writes()).toBeGreaterThan(3);
});

test('an output that stands still costs bounded memory; what is lost is counted and told once', async () => {
  const { output, writer, dropped } = setUp(1_000);
  output.hold();
  writer.write(`${'x'.repeat(99)}\n`);
  await new Promise(setImmediate);
  for (let line = 0; line < 50; line += 1) writer.write(`${'y'.repeat(99)}\n`);
  expect(writer.droppedLines).toBe(40);
  expect(await writer.flush(20)).toBe(false);
  expect(dropped).toEqual([]);
  output.release();
  expect(await writer.flush(10_000)).toBe(true);
  expect(output.text().match(/\n/g)).toHaveLength(11);
  expect(dropped).toEqual([40]);
});

test('a full disk is tried again, and nothing that fitted into memory is lost', async () => {
  const { output, writer, dropped } = setUp();
  output.fail('ENOSPC');
  writer.write('one\n');
  await expect.poll(() => output.failures()).toBe(1);
  writer.write('two\n');
  output.fail(undefined);
  expect(await writer.flush(30_000)).toBe(true);
  expect(output.text()).toBe('one\ntwo\n');
  expect([writer.droppedLines, dropped]).toEqual([0, []]);
});

test('a reader who has gone loses every line, and holds nothing up', async () => {
  const { output, writer } = setUp();
  output.fail('EPIPE');
  writer.write('one\n');
  writer.write('two\n');
  expect(await writer.flush(10_000)).toBe(true);
  writer.write('three\n');
  expect(await writer.flush(10_000)).toBe(true);
  expect(writer.droppedLines).toBe(3);
});

test('what is not begun can be taken when the program ends at once', () => {
  const { writer } = setUp();
  writer.write('one\n');
  writer.write('two\n');
  expect(String(writer.takeRest())).toBe('one\ntwo\n');
  expect(writer.takeRest()).toHaveLength(0);
});

test('characters that would deceive a reader are escaped, and mean the same in JSON', async () => {
  const { output, writer } = setUp();
  const user = 'a\u009b2J\u2028\u202egpj.exe\u2066\ufeffzoë 😀';
  writer.write(`${JSON.stringify({ user })}\n`);
  await writer.flush(5_000);
  expect(output.text()).not.toMatch(/[\u0080-\u009f\u2028\u202e\u2066\ufeff]/);
  expect(output.text()).toContain('zoë 😀');
  expect(JSON.parse(output.text())).toEqual({ user });
});
