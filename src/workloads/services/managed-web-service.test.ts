import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { kill, pid as ownPid } from 'node:process';
import { createInterface } from 'node:readline';
import { describe, expect, test } from 'vitest';
import { freePort } from '../../../test/support/free-port.ts';
import { pathOf, requires } from '../../../test/support/requires.ts';
import {
  app,
  freeUrl,
  inState,
  serviceConfig,
  untilStatus,
  useServices,
} from '../../../test/support/service-worlds.ts';
import { sharePrograms } from '../../../test/support/shared-programs.ts';
import { identifyProcess } from '../../platform/process-table/process-table.ts';
import type { ServiceStatus } from './service-status.ts';

const { createRegistry, started, world } = useServices();

describe('a managed web service', () => {
  test('gets its route when it is ready and loses it when it stops', async () => {
    const url = await freeUrl();
    const registry = createRegistry([{ name: 'a', url, command: app('web-server') }]);
    expect(world.routes.get('a')).toBe('closed');
    expect(registry.statusOf('a')?.state).toBe('stopped');
    await registry.start();
    const { pid } = await untilStatus(registry, inState('ready'));
    expect(world.routes.get('a')).toBe('open');
    const response = await fetch(`${url}/services/a/`);
    expect(await response.json()).toEqual({ pid, name: 'a', url: '/services/a/' });
    await registry[Symbol.asyncDispose]();
    expect(world.routes.get('a')).toBe('closed');
    expect(registry.statusOf('a')?.state).toBe('stopped');
    expect(identifyProcess(pid ?? 0)).toBeUndefined();
  });

  test('is restarted whenever it stops, also with exit code 0', async () => {
    const url = await freeUrl();
    const registry = await started([{ name: 'a', url, command: app('web-server') }]);
    const before = await untilStatus(registry, inState('ready'));
    await fetch(`${url}/exit`, { method: 'POST' });
    const after = await untilStatus(
      registry,
      ({ state, restarts }) => state === 'ready' && restarts === 1,
    );
    expect(after.pid).not.toBe(before.pid);
    expect(after.lastExit).toMatchObject({ code: 0, signal: null, leftBehind: 0 });
    expect(after.lastError).toBeUndefined();
    expect(world.routes.get('a')).toBe('open');
  });

  test('is restarted when something kills it', async () => {
    const url = await freeUrl();
    const registry = await started([{ name: 'a', url, command: app('web-server') }]);
    const { pid = 0 } = await untilStatus(registry, inState('ready'));
    kill(pid, 'SIGKILL');
    const after = await untilStatus(
      registry,
      ({ state, restarts }) => state === 'ready' && restarts === 1,
    );
    expect(after.lastExit?.signal).toBe('SIGKILL');
  });

  test('that dies every few seconds stays crash looping while it answers in between', async () => {
    const url = await freeUrl();
    const registry = await started([{ name: 'a', url, command: app('web-server') }]);
    for (let run = 0; run < 3; run += 1) {
      await untilStatus(registry, ({ isReady, restarts }) => isReady && restarts === run);
      await fetch(`${url}/exit`, { method: 'POST' });
    }
    const status = await untilStatus(
      registry,
      ({ isReady, restarts }) => isReady && restarts === 3,
    );
    expect(status.state).toBe('crash_looping');
    expect(world.routes.get('a')).toBe('open');
  });

  test('that answers with 5xx is not ready, says why, and is left running', async () => {
    const url = await freeUrl();
    const entry = { name: 'a', url, command: app('web-server', 'broken'), timeout: 0.5 };
    const registry = await started([entry]);
    const answersWithError = ({ state, lastError }: ServiceStatus) =>
      state === 'unhealthy' &&
      lastError?.toString().endsWith(`${url} answers with status 500`) === true;
    const broken = await untilStatus(registry, answersWithError);
    expect(broken.pid).toBeDefined();
    expect(world.routes.get('a')).toBe('closed');
    await fetch(`${url}/mend`, { method: 'POST' });
    const mended = await untilStatus(registry, inState('ready'));
    expect(mended.pid).toBe(broken.pid);
    expect(world.routes.get('a')).toBe('open');
  });

  test('that never listens is visible with its reason', async () => {
    const url = await freeUrl();
    const registry = await started([
      { name: 'a', url, command: app('never-listens'), timeout: 0.3 },
    ]);
    const status = await untilStatus(registry, inState('unhealthy'));
    expect(String(status.lastError)).toBe(`not ready after 0.3 s: nothing listens on ${url}`);
    expect(world.routes.get('a')).toBe('closed');
  });

  test.runIf(requires('root'))(
    "gets no route while another account's program has its port",
    async () => {
      const script = `require('http').createServer((q, r) => r.end()).listen(0, '127.0.0.1', function () {
      console.log(this.address().port);
    })`;
      await using programs = await sharePrograms();
      const foreignProcess = spawn(programs.node, ['-e', script], { uid: 65534, gid: 65534 });
      try {
        const [port] = await once(createInterface(foreignProcess.stdout), 'line');
        const url = `http://127.0.0.1:${port}`;
        const entry = { name: 'a', url, command: app('never-listens'), timeout: 0.3 };
        const registry = await started([entry]);
        const { lastError } = await untilStatus(registry, inState('crash_looping'));
        expect(String(lastError)).toBe(`pid ${foreignProcess.pid} (node) holds the port ${port}`);
        expect(world.routes.get('a')).toBe('closed');
      } finally {
        foreignProcess.kill('SIGKILL');
      }
    },
  );
});

describe('the port of a managed service', () => {
  async function listen(wanted?: number) {
    const port = wanted ?? (await freePort());
    const server = createServer((_request, response) => response.end());
    await once(server.listen(port, '127.0.0.1'), 'listening');
    return {
      url: `http://127.0.0.1:${port}`,
      async [Symbol.asyncDispose]() {
        server.closeAllConnections();
        server.close();
      },
    };
  }

  test('that another program of its account holds keeps it from starting, until it is free', async () => {
    const foreignProcess = await listen();
    const registry = await started([
      { name: 'a', url: foreignProcess.url, command: app('web-server') },
    ]);
    const { lastError, pid } = await untilStatus(registry, inState('crash_looping'));
    expect(String(lastError)).toMatch(
      new RegExp(`^pid ${ownPid} \\(.+\\) holds the port ${new URL(foreignProcess.url).port}$`),
    );
    expect(pid).toBeUndefined();
    expect(world.routes.get('a')).toBe('closed');
    await foreignProcess[Symbol.asyncDispose]();
    await untilStatus(registry, ({ isReady }) => isReady);
    expect(world.routes.get('a')).toBe('open');
  });

  test('that another program takes while it starts is not its own, unless it is to be so', async () => {
    const url = await freeUrl();
    const entry = { name: 'a', url, command: app('never-listens'), timeout: 0.3 };
    const registry = await started([entry]);
    await untilStatus(registry, ({ pid }) => pid !== undefined);
    await using _foreignProcess = await listen(Number(new URL(url).port));
    await untilStatus(
      registry,
      ({ lastError }) =>
        lastError?.toString().endsWith(`holds the port ${new URL(url).port}`) === true,
    );
    expect(world.routes.get('a')).toBe('closed');
    await registry.applyConfig([serviceConfig({ ...entry, listens_elsewhere: true })]);
    await untilStatus(registry, inState('ready'));
  });

  test.skipIf(!requires('setsid'))('may be held by whatever the command has started', async () => {
    const url = await freeUrl();
    // One that left its process group, its session and its parent.
    const script = `${pathOf('setsid')} sh -c '"$@" & ' sh "$@"; exec sleep 600`;
    const command = ['sh', '-c', script, 'sh', ...app('web-server')];
    const registry = await started([{ name: 'a', url, command }]);
    await untilStatus(registry, inState('ready'));
  });
});
