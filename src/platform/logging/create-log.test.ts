import { stripVTControlCharacters } from 'node:util';
import { expect, test } from 'vitest';
import { createLog, frequentInfo, type LogFormat } from './create-log.ts';

const formats: LogFormat[] = [
  { form: 'json', time: 'iso8601', level: 'name', isTerminal: false },
  { form: 'json', time: 'epoch_ms', level: 'number', isTerminal: false },
  { form: 'text', time: 'iso8601', level: 'name', isTerminal: false },
];

async function setUp(format: LogFormat, level = 'info') {
  const lines: string[] = [];
  const log = await createLog({ level, format, name: 'hub', write: (line) => lines.push(line) });
  return { lines, log, often: frequentInfo(log) };
}

/** A line without what differs between two moments. */
function timeless(line = ''): string {
  return line.replace(/"time":("[^"]*"|\d+)|^\[[^\]]*\]/, 'TIME');
}

test.each(formats)(
  'a frequent event is the same line as any other in $form, $time',
  async (format) => {
    const { lines, log, often } = await setUp(format);
    const fields = { path: '/a"b\\c', user: undefined, status: 200 };
    log.info(fields, 'forwarded');
    often?.({ ...fields, msg: 'forwarded' });
    expect(timeless(lines[1])).toBe(timeless(lines[0]));
    expect(lines[1]).toContain('200');
  },
);

test('a frequent event is not written where the level is above it', async () => {
  const [format] = formats;
  if (format === undefined) throw new Error('there is no format');
  const { lines, often } = await setUp(format, 'warn');
  expect(often).toBeUndefined();
  expect(lines).toEqual([]);
});

test('the time of a line is the moment it was written', async () => {
  const [format] = formats;
  if (format === undefined) throw new Error('there is no format');
  const { lines, log } = await setUp(format);
  for (const line of ['one', 'two']) {
    const before = Date.now();
    log.info(line);
    const { time } = JSON.parse(lines.at(-1) ?? '') as { time: string };
    expect(Date.parse(time)).toBeGreaterThanOrEqual(before);
    expect(Date.parse(time)).toBeLessThanOrEqual(Date.now());
    while (Date.now() === before) await new Promise(setImmediate);
  }
});

test('an error is one line of text, with its place and its cause', async () => {
  const { lines, log } = await setUp({
    form: 'text',
    time: 'iso8601',
    level: 'name',
    isTerminal: false,
  });
  const cause = new Error('connect ECONNREFUSED\n127.0.0.1:9');
  log.error({ err: new TypeError('no such badge', { cause }) }, 'it\nfailed');
  expect(lines).toHaveLength(1);
  expect(lines[0]?.match(/\n/g)).toHaveLength(1);
  expect(lines[0]).toMatch(
    /ERROR \(hub\): it failed .*TypeError: no such badge \(at .*create-log\.test\.ts(?:\?\w+=\d+)?:\d+:\d+\).*; caused by Error: connect ECONNREFUSED/,
  );
});

test('on a terminal an event is one short line', async () => {
  const { lines, log } = await setUp({
    form: 'text',
    time: 'iso8601',
    level: 'name',
    isTerminal: true,
  });
  log
    .child({ service: 'wiki' })
    .warn(
      { servicePid: 7, reason: 'exited with code 1', failures: 2, hosts: ['a'], url: undefined },
      'service ended',
    );
  expect(stripVTControlCharacters(lines[0] ?? '').replace(/^\[[^\]]*\] /, '')).toBe(
    'WARN (hub): [wiki] service ended reason="exited with code 1" failures=2 hosts=["a"]\n',
  );
});
