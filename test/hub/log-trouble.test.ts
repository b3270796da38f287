import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdirSync, openSync, writeFileSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { Agent, get, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';
import { identifyProcess, isSameProcess } from '../../src/platform/process-table/process-table.ts';
import { freePort } from '../support/free-port.ts';
import { createHubFolder, type HubFolder } from '../support/hub-process.ts';
import { programFile } from '../support/program-file.ts';
import { pathOf, requires } from '../support/requires.ts';
import { fixtureApp } from '../support/server-hub.ts';
import { until } from '../support/test-hub.ts';

/** Far more than an answer takes: a test is to say which one never came. */
const answerMs = 20_000;
const lossMessage = 'log lines lost';
const agent = new Agent({ keepAlive: true });

const start = (folder: HubFolder) => [
  process.execPath,
  programFile('main'),
  'start',
  '--config',
  folder.configFile,
];

/** A hub whose standard error goes where a test wants it. */
async function startWith(
  folder: HubFolder,
  stderr: number | 'pipe',
  command: readonly string[] = start(folder),
): Promise<AsyncDisposable & { readonly child: ChildProcess; readonly pid: number }> {
  const [program = '', ...args] = command;
  const child = spawn(program, args, { cwd: folder.directory, stdio: ['ignore', 'pipe', stderr] });
  child.stdout?.resume();
  let isOver = false;
  const closed = once(child, 'exit').then(() => {
    isOver = true;
  });
  await until(async () => isOver || (await isHealthy(folder)), 'the hub answers');
  return {
    child,
    pid: child.pid ?? 0,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await closed;
      child.stderr?.destroy();
    },
  };
}

const diskBytes = 16 * 1024 * 1024;

/** A hub with a small disk in its folder, `disk`. */
async function startOnDisk(folder: HubFolder, redirection: string) {
  const disk = join(folder.directory, 'disk');
  mkdirSync(disk);
  const onDisk = `mount -t tmpfs -o size=${diskBytes} tmpfs disk && exec "$@" ${redirection}`;
  // Its own mount namespace: the disk goes with the process.
  const inNamespace = [pathOf('unshare'), '--mount', 'sh', '-c', onDisk, 'sh', ...start(folder)];
  const hub = await startWith(folder, openSync('/dev/null', 'w'), inNamespace);
  return { ...hub, disk: `/proc/${hub.pid}/root${disk}` };
}

async function isHealthy(folder: HubFolder): Promise<boolean> {
  return fetch(`${folder.url}hub/health`, { signal: AbortSignal.timeout(answerMs) }).then(
    (answer) => answer.ok,
    () => false,
  );
}

/** Requests that leave a line of the log each, as long a one as can be, for as little work as can be. */
async function makeLines(folder: HubFolder, count: number): Promise<void> {
  for (let sent = 0; sent < count; sent += 1) {
    const outgoing = get(`${folder.apiUrl}/nothing-here/${'x'.repeat(2_000)}`, {
      agent,
      headers: { authorization: 'token admin-service-token' },
      signal: AbortSignal.timeout(answerMs),
    });
    const [answer] = (await once(outgoing, 'response')) as [IncomingMessage];
    expect(answer.statusCode).toBe(404);
    await text(answer);
  }
}

async function droppedLines(folder: HubFolder): Promise<number> {
  const answer = await fetch(`${folder.apiUrl}/metrics`, {
    headers: { authorization: 'token admin-service-token' },
  });
  return Number(/^hub_log_lines_dropped_total (\d+)$/m.exec(await answer.text())?.[1]);
}

/** Fills what the hub keeps of lines that nobody takes, until some are lost. */
async function untilLinesAreLost(folder: HubFolder): Promise<void> {
  await until(async () => {
    await Promise.all([makeLines(folder, 50), makeLines(folder, 50), makeLines(folder, 50)]);
    return (await droppedLines(folder)) > 0;
  }, 'lines of the log were lost');
}

/** SIGTERM ends it, in good order and long before anybody would lose patience. */
async function expectToStop({ child }: { readonly child: ChildProcess }): Promise<void> {
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  expect(await exited).toEqual([0, null]);
}

describe('a hub whose log cannot be written', () => {
  test('goes on when the disk has never had room, and stops when it is told', async () => {
    await using folder = await createHubFolder();
    const full = openSync('/dev/full', 'w');
    await using hub = await startWith(folder, full);
    closeSync(full);
    await untilLinesAreLost(folder);
    expect(await isHealthy(folder)).toBe(true);
    await expectToStop(hub);
  });

  test.runIf(requires('root', 'unshare'))(
    'goes on when the disk fills up, and says what was lost',
    async () => {
      await using folder = await createHubFolder();
      await using hub = await startOnDisk(folder, '2>>disk/log');
      const file = (name: string) => join(hub.disk, name);
      writeFileSync(file('filler'), Buffer.alloc(diskBytes - 128 * 1024));
      await untilLinesAreLost(folder);
      expect(await isHealthy(folder)).toBe(true);
      await rm(file('filler'));
      await until(
        async () => (await readFile(file('log'), 'utf8')).includes(lossMessage),
        'the loss is told',
      );
      await expectToStop(hub);
    },
  );

  test.runIf(requires('root', 'unshare'))(
    'runs servers and services when their output has no room',
    async () => {
      const port = await freePort();
      await using folder = await createHubFolder({
        Hub: {
          log_dir: 'disk/logs',
          services: [
            {
              name: 'app',
              url: `http://127.0.0.1:${port}`,
              command: fixtureApp('web-server', 'app'),
              access: 'gateway',
            },
          ],
        },
        Spawner: { cmd: fixtureApp('web-server'), access: 'gateway' },
      });
      await using hub = await startOnDisk(folder, '');
      const ask = async (path: string, method = 'GET') => {
        const headers = { authorization: 'token admin-service-token' };
        const answer = await fetch(folder.apiUrl + path, { method, headers });
        const body = await answer.text();
        return { status: answer.status, model: body === '' ? {} : JSON.parse(body) };
      };
      const service = async () => (await ask('/services/app')).model;
      await until(async () => (await service()).ready, 'the service is ready');
      const { pid } = await service();
      expect(() => writeFileSync(join(hub.disk, 'filler'), Buffer.alloc(diskBytes))).toThrow(
        'ENOSPC',
      );

      await ask('/users/ada', 'POST');
      await ask('/users/ada/server', 'POST');
      await until(async () => (await ask('/users/ada/server')).model.ready, 'the server is ready');
      await ask('/services/app/restart', 'POST');
      await until(async () => {
        const model = await service();
        return model.ready && model.pid !== pid;
      }, 'the service has been restarted');
      expect((await ask('/users/ada/server', 'DELETE')).status).toBe(204);
      await expectToStop(hub);
    },
  );

  test('goes on while its reader stands still, and tells the reader afterwards', async () => {
    await using folder = await createHubFolder();
    await using hub = await startWith(folder, 'pipe');
    // Nobody listens to `data`: after the pipe, the hub's own memory fills.
    await untilLinesAreLost(folder);
    expect(await isHealthy(folder)).toBe(true);
    let log = '';
    hub.child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
      log += chunk;
    });
    await until(() => log.includes(lossMessage), 'the loss is told');
    const reported = log.split('\n').find((line) => line.includes(lossMessage));
    expect(JSON.parse(reported ?? '')).toMatchObject({
      level: 'warn',
      droppedLines: await droppedLines(folder),
    });
    await expectToStop(hub);
  });

  test('stops when it is told although its reader stands still', async () => {
    await using folder = await createHubFolder();
    await using hub = await startWith(folder, 'pipe');
    await untilLinesAreLost(folder);
    await expectToStop(hub);
  });

  test('goes on when its reader has gone, and stops when it is told', async () => {
    await using folder = await createHubFolder();
    await using hub = await startWith(folder, 'pipe');
    hub.child.stderr?.destroy();
    await makeLines(folder, 20);
    await until(async () => (await droppedLines(folder)) > 0, 'lines are counted as lost');
    expect(await isHealthy(folder)).toBe(true);
    await expectToStop(hub);
  });

  test.skipIf(!requires('script'))(
    'goes on and stops when it is told while its terminal is stopped',
    async () => {
      await using folder = await createHubFolder();
      const command = start(folder)
        .map((word) => `'${word}'`)
        .join(' ');
      // A terminal for the hub; what is shown goes to a pipe.
      await using terminal = await startWith(folder, 'pipe', [
        pathOf('script'),
        '--quiet',
        '--return',
        '--command',
        `exec ${command}`,
        '/dev/null',
      ]);
      const children = await readFile(
        `/proc/${terminal.pid}/task/${terminal.pid}/children`,
        'utf8',
      );
      const hub = identifyProcess(Number(children));
      if (hub === undefined) throw new Error(`no hub in the terminal: ${children}`);
      terminal.child.stdout?.pause();
      await untilLinesAreLost(folder);
      expect(await isHealthy(folder)).toBe(true);
      process.kill(hub.pid, 'SIGTERM');
      await until(() => !isSameProcess(hub), 'hub stopped');
    },
  );
});
