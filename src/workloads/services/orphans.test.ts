import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { env, execPath, kill } from 'node:process';
import { createInterface } from 'node:readline';
import { describe, expect, test, vi } from 'vitest';
import { app, inState, untilStatus, useServices } from '../../../test/support/service-worlds.ts';
import {
  identifyProcess,
  isSameProcess,
  type ProcessIdentity,
} from '../../platform/process-table/process-table.ts';
import { type Clock, systemClock } from '../../spawning/processes/clock.ts';
import { listProcessTags } from '../../spawning/processes/process-tag.ts';
import { createSharedView } from '../../spawning/processes/process-view.ts';
import { createManagedProcessStore } from './managed-process-store.ts';

const { createRegistry, started, world } = useServices();

describe('what a killed hub left running', () => {
  /** Starts the program of a service under a hub that is killed; tells the process. */
  async function orphan(name: string, hubId: string, command: readonly string[]) {
    const file = join(world.directory, 'logs', `service-${name}.log`);
    const [program = '', ...rest] = app('supervises', file, ...command);
    const hub = spawn(program, rest, {
      env: { ...env, TAG: `${file}#${hubId}` },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [line] = await once(createInterface(hub.stdout), 'line');
    hub.kill('SIGKILL');
    await once(hub, 'exit');
    return { file, identity: JSON.parse(String(line)) as ProcessIdentity };
  }

  test('is ended by the next start, also a service that is no longer configured', async () => {
    const store = createManagedProcessStore(world.database, world.lease.id);
    const orphans = await Promise.all(
      ['a', 'former'].map(async (name) => {
        const { file, identity } = await orphan(name, 'hub-1', app('leaves-children', 'stay'));
        await store.record(name, identity, new Date());
        const children = await vi.waitFor(
          async () =>
            JSON.parse(await readFile(file, 'utf8')) as { sameGroup: number; daemon: number },
          { timeout: 30_000, interval: 20 },
        );
        return [identity, identifyProcess(children.sameGroup), identifyProcess(children.daemon)];
      }),
    );
    expect(orphans.flat().map((each) => each && isSameProcess(each))).toEqual(Array(6).fill(true));
    const registry = await started([{ name: 'a', command: app('never-listens') }]);
    expect(orphans.flat().map((each) => each && isSameProcess(each))).toEqual(Array(6).fill(false));
    const { pid } = await untilStatus(registry, inState('ready'));
    await expect.poll(() => store.list()).toMatchObject([{ serviceName: 'a', identity: { pid } }]);
  });

  test('is looked for once for all services, however many there are', async () => {
    const names = ['a', 'b', 'c', 'd'];
    const left = await Promise.all(names.map((name) => orphan(name, 'hub-1', ['sleep', '600'])));
    let looks = 0;
    const view = createSharedView({
      async listTags() {
        looks += 1;
        return listProcessTags();
      },
    });
    const configs = names.map((name) => ({ name, command: ['sleep', '600'] }));
    await createRegistry(configs, undefined, undefined, view).start();
    expect(left.some(({ identity }) => isSameProcess(identity))).toBe(false);
    expect(looks).toBeGreaterThan(0);
    // One service alone takes ten.
    expect(looks).toBeLessThanOrEqual(20);
  });

  test('is not looked for where none has run before', async () => {
    let waits = 0;
    const clock: Clock = {
      ...systemClock,
      async sleep(ms, signal) {
        waits += 1;
        await systemClock.sleep(ms, signal);
      },
    };
    const registry = createRegistry([{ name: 'a', command: app('never-listens') }], 600_000, clock);
    await registry.start();
    expect(waits).toBe(0);
  });

  test('is left alone when it is of another hub with a service of the same name', async () => {
    const { identity } = await orphan('a', 'hub-2', app('never-listens'));
    try {
      await started([{ name: 'a', command: app('never-listens') }]);
      expect(isSameProcess(identity)).toBe(true);
    } finally {
      kill(identity.pid, 'SIGKILL');
    }
  });

  test('is not waited for when the start is ended, and stays known to the next one', async () => {
    const store = createManagedProcessStore(world.database, world.lease.id);
    const { identity } = await orphan('a', 'hub-1', app('ignores-sigterm'));
    await store.record('a', identity, new Date());
    const registry = createRegistry([{ name: 'a', command: app('never-listens') }]);
    const ending = new AbortController();
    const starting = registry.start(ending.signal);
    ending.abort();
    await starting;
    expect(registry.statusOf('a')).toMatchObject({ pid: undefined, isReady: false });
    expect(await store.list()).toMatchObject([{ serviceName: 'a', identity }]);
    await started([{ name: 'a', command: app('never-listens') }]);
    expect(isSameProcess(identity)).toBe(false);
  });

  test('is left alone when its pid belongs to another program now', async () => {
    const store = createManagedProcessStore(world.database, world.lease.id);
    const innocent = spawn(execPath, ['-e', 'setInterval(() => {}, 60000)'], { detached: true });
    try {
      const identity = identifyProcess(innocent.pid ?? 0);
      if (identity === undefined) throw new Error('the other program has not started');
      await store.record('former', { ...identity, startTime: 'another boot/1' }, new Date());
      await started([]);
      expect(isSameProcess(identity)).toBe(true);
      expect(await store.list()).toEqual([]);
    } finally {
      innocent.kill('SIGKILL');
    }
  });
});
