import { pino } from 'pino';
import { expect, test } from 'vitest';
import { createPluginLog, type PluginLog } from './plugin-log.ts';

function setUp() {
  const lines: string[] = [];
  const log = pino({ base: { pid: 1, hostname: 'here' } }, { write: (line) => lines.push(line) });
  return { lines, log: createPluginLog(log, { authenticator: 'badges' }) };
}

test('a field that every line has is renamed, and one that says the same again is left out', () => {
  const { lines, log } = setUp();
  log.warn({ pid: 7, authenticator: 'badges', msg: 'mine', serverGuard: 3 }, 'badge refused');
  const [line = ''] = lines;
  expect(JSON.parse(line)).toMatchObject({
    pid: 1,
    plugin_pid: 7,
    authenticator: 'badges',
    plugin_msg: 'mine',
    serverGuard: 3,
    msg: 'badge refused',
  });
  for (const name of ['pid', 'authenticator', 'msg']) {
    expect(line.match(new RegExp(`"${name}":`, 'g')), name).toHaveLength(1);
  }
});

test('another value of a label is kept beside it', () => {
  const { lines, log } = setUp();
  log.info({ authenticator: 'upstream' }, 'asked');
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({
    authenticator: 'badges',
    plugin_authenticator: 'upstream',
  });
});

test('an error keeps its stack, and a message alone is a line too', () => {
  const { lines, log } = setUp();
  log.error({ err: new Error('no reader') }, 'failed');
  (log as PluginLog & { info(message: string): void }).info('hello');
  expect(JSON.parse(lines[0] ?? '').err).toMatchObject({ message: 'no reader' });
  expect(JSON.parse(lines[1] ?? '').msg).toBe('hello');
});
