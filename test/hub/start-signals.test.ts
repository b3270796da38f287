import { readFileSync } from 'node:fs';
import { afterEach, describe, expect, test } from 'vitest';
import {
  createHubFolder,
  type HubFolder,
  type HubProcess,
  spawnHubProcess,
} from '../support/hub-process.ts';
import { adminToken, fixtureApp, isAlive, type ServerModel } from '../support/server-hub.ts';
import { until } from '../support/test-hub.ts';

const leftovers: number[] = [];
afterEach(() => {
  for (const pid of leftovers.splice(0)) if (isAlive(pid)) process.kill(pid, 'SIGKILL');
});

/** Whether the program has its say about signals. Node.js itself catches those that end a process. */
function catchesSignals(pid: number): boolean {
  const [, caught = '0'] =
    /^SigCgt:\s*([0-9a-f]+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  // The lowest bit stands for the first signal, SIGHUP (proc(5)).
  return (BigInt(`0x${caught}`) & 1n) === 1n;
}

function begin(folder: HubFolder) {
  const hub = spawnHubProcess(['start', '--config', folder.configFile], { cwd: folder.directory });
  leftovers.push(hub.pid);
  return hub;
}

function api(folder: HubFolder, path: string, method = 'GET'): Promise<Response> {
  return fetch(folder.apiUrl + path, {
    method,
    headers: { authorization: `token ${adminToken}` },
  });
}

async function isListening({ url }: HubFolder): Promise<boolean> {
  return fetch(`${url}hub/health`).then(
    () => true,
    () => false,
  );
}

// Ended by force after a second: each hub that ends waits so long for it.
const stubborn = { name: 'stubborn', command: fixtureApp('ignores-sigterm'), stop_timeout: 1 };

/**
 * Kills a hub that leaves a service behind that cannot be ended in a moment, and starts the next one: it answers,
 * but is not ready before the service has ended.
 */
async function startAfterKill(folder: HubFolder, running: HubProcess) {
  await until(() => running.stderr().includes('ignoring SIGTERM'), 'the service ignores SIGTERM');
  const { pid: orphan } = (await (await api(folder, '/services/stubborn')).json()) as {
    pid: number;
  };
  leftovers.push(orphan);
  running.signal('SIGKILL');
  await running.exited;
  const hub = begin(folder);
  await until(
    async () => (await isListening(folder)) && (await api(folder, '/info')).status === 200,
    'the hub answers',
  );
  return { hub, orphan };
}

describe('SIGHUP', () => {
  test('that comes first of all is obeyed once the hub is ready', async () => {
    await using folder = await createHubFolder();
    await using hub = begin(folder);
    await until(() => catchesSignals(hub.pid), 'signals are caught');
    expect(hub.stderr()).toBe('');
    hub.signal('SIGHUP');
    await until(() => hub.logged(/new configuration applied/).length > 0, 'the hub has reloaded');
    expect(hub.logged(/hub ready/)).toHaveLength(1);
  });
});

const signals = ['SIGTERM', 'SIGINT'] as const;

test.each(signals)('%s that comes first of all ends the start', async (signal) => {
  await using folder = await createHubFolder();
  await using hub = begin(folder);
  await until(() => catchesSignals(hub.pid), 'signals are caught');
  hub.signal(signal);
  expect(await hub.exited).toBe(0);
  expect(hub.stdout()).toBe('');
});

test('a signal that comes when the hub has begun to listen ends the start in order', async () => {
  await using folder = await createHubFolder({ Hub: { services: [stubborn] } });
  for (const signal of signals) {
    await using hub = begin(folder);
    await until(() => isListening(folder), 'the hub listens');
    hub.signal(signal);
    expect(await hub.exited).toBe(0);
    expect(hub.logged(/^hub stopping$/)).toMatchObject([{ signal }]);
    expect(hub.logged(/^hub stopped$/)).toHaveLength(1);
    expect(hub.logged(/fail|former hub/)).toEqual([]);
    for (const { servicePid } of hub.logged(/^service started$/)) {
      expect(isAlive(Number(servicePid))).toBe(false);
    }
  }
  await using again = await folder.start();
  expect(again.logged(/former hub/)).toEqual([]);
});

test('a signal that comes while the start waits ends it and leaves what runs to the next start, SIGHUP is obeyed after it', async () => {
  const Spawner = { cmd: fixtureApp('web-server'), access: 'gateway' };
  await using folder = await createHubFolder({ Hub: { services: [stubborn] }, Spawner });
  let running = await folder.start();
  // Servers that end with their hub do not end with a start that is given up.
  const configure = (...added: unknown[]) =>
    folder.configure({ Hub: { services: [stubborn, ...added], cleanup_servers: true }, Spawner });
  await configure();
  await api(folder, '/users/alice', 'POST');
  await api(folder, '/users/alice/server', 'POST');
  const server = async () => {
    const user = (await (await api(folder, '/users/alice')).json()) as {
      servers: Record<string, ServerModel>;
    };
    return user.servers[''];
  };
  await until(async () => (await server())?.ready === true, 'the server is ready');
  const serverPid = Number((await server())?.state?.['pid']);
  leftovers.push(serverPid);
  const expectRestored = async (hub: HubProcess, orphan: number) => {
    expect(isAlive(orphan)).toBe(false);
    expect(hub.logged(/servers of earlier run restored/)).toMatchObject([{ restored: 1, gone: 0 }]);
    expect((await server())?.ready).toBe(true);
  };

  for (const signal of signals) {
    const { hub, orphan } = await startAfterKill(folder, running);
    hub.signal(signal);
    expect(await hub.exited).toBe(0);
    expect(hub.logged(/^hub stopped$/)).toHaveLength(1);
    expect(hub.logged(/service started|hub ready/)).toEqual([]);
    expect(isAlive(serverPid)).toBe(true);

    running = await folder.start();
    await expectRestored(running, orphan);
  }

  const { hub, orphan } = await startAfterKill(folder, running);
  await using _ = hub;
  // With the file of that time.
  await configure({ name: 'added', url: 'http://127.0.0.1:1' });
  expect(await folder.command(['reload'])).toMatchObject({ code: 0 });
  await until(() => hub.logged(/new configuration applied/).length > 0, 'the hub has reloaded');
  expect(hub.logged(/new configuration applied/)).toMatchObject([
    { services: { added: ['added'] } },
  ]);
  await expectRestored(hub, orphan);
});
