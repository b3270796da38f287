import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { env, kill } from 'node:process';
import { describe, expect, test, vi } from 'vitest';
import { requires } from '../../../test/support/requires.ts';
import {
  app,
  inState,
  untilOutput,
  untilStatus,
  useServices,
} from '../../../test/support/service-worlds.ts';
import { identifyProcess } from '../../platform/process-table/process-table.ts';
import { type Clock, systemClock } from '../../spawning/processes/clock.ts';

const { createRegistry, started, world } = useServices();

describe('a managed service without a url', () => {
  test('counts as ready when it keeps running, and its output is kept', async () => {
    const registry = await started([{ name: 'a', command: app('never-listens') }]);
    await untilStatus(registry, inState('ready'));
    expect(await untilOutput(registry)).toEqual(['running without a port']);
    expect(world.routes.size).toBe(0);
    expect(await readdir(join(world.directory, 'logs'))).toEqual(['service-a.log']);
  });

  test('is measured', async () => {
    const registry = await started([{ name: 'a', command: app('never-listens') }]);
    const { usage } = await untilStatus(
      registry,
      ({ usage }) => usage !== undefined && usage.memoryBytes > 10 * 1024 * 1024,
    );
    expect(usage).toMatchObject({ processes: 1 });
  });

  test('that exits at once ends up crash looping, is never given up, and can be reset', async () => {
    const registry = await started([{ name: 'a', command: app('exit-at-once', '7') }]);
    const status = await untilStatus(registry, inState('crash_looping'));
    expect(status.lastExit).toMatchObject({ code: 7 });
    expect(String(status.lastError)).toMatch(/^exited with code 7 after \d+(?:\.\d)? s$/);
    expect(status.restarts).toBeGreaterThanOrEqual(2);
    await untilStatus(registry, ({ restarts }) => restarts > status.restarts + 2);
    expect(await registry.restart('a')).toBe(true);
    await untilStatus(registry, ({ state }) => state !== 'crash_looping');
    expect(await registry.restart('nobody')).toBe(false);
  });

  test('is crash looping until a run has lasted', async () => {
    const file = join(world.directory, 'mended');
    const command = ['sh', '-c', `[ -e ${file} ] || exit 7; exec sleep 600`];
    const registry = await started([{ name: 'a', command }], 3_000);
    await untilStatus(registry, inState('crash_looping'));
    await writeFile(file, '');
    const ready = await untilStatus(registry, ({ isReady }) => isReady);
    expect(ready.state).toBe('crash_looping');
    await untilStatus(registry, inState('ready'));
  });

  test.each([
    [
      'whose command does not exist',
      ['no-such-command'],
      'command not found in PATH: no-such-command',
    ],
    [
      'whose command may not be executed',
      ['/etc/passwd'],
      'permission denied: /etc/passwd is not executable',
    ],
  ])('%s says so and is tried again', async (_what, command, reason) => {
    const registry = await started([{ name: 'a', command }]);
    const status = await untilStatus(registry, inState('crash_looping'));
    expect(String(status.lastError)).toBe(reason);
    await untilStatus(registry, ({ restarts }) => restarts > status.restarts);
  });

  test('is not started again while the instance has lost its lease', async () => {
    let waits = 0;
    const clock: Clock = {
      ...systemClock,
      async sleep(ms, signal) {
        if (ms === 250) waits += 1;
        await systemClock.sleep(ms, signal);
      },
    };
    const registry = createRegistry([{ name: 'a', command: ['sleep', '600'] }], 600_000, clock);
    await registry.start();
    const { pid = 0 } = await untilStatus(registry, inState('ready'));
    world.isLeaseHeld = false;
    kill(pid, 'SIGKILL');
    await vi.waitFor(() => expect(waits).toBeGreaterThan(1), { timeout: 30_000 });
    expect(registry.statusOf('a')?.pid).toBeUndefined();
    world.isLeaseHeld = true;
    await untilStatus(registry, inState('ready'));
  });

  test('whose user has gone says so', async () => {
    const registry = await started([{ name: 'a', command: ['true'], user: 'no-such-user' }]);
    const status = await untilStatus(registry, ({ lastError }) => lastError !== undefined);
    expect(String(status.lastError)).toBe('there is no user "no-such-user" on this machine');
  });

  test('that goes to the background is ended with all it left, and told to stay', async () => {
    const registry = await started([{ name: 'a', command: app('leaves-children') }]);
    const status = await untilStatus(registry, ({ lastExit }) => lastExit !== undefined);
    expect(status.lastExit).toMatchObject({ code: 0, leftBehind: 2 });
    expect(String(status.lastError)).toContain('a service must stay in the foreground');
  });

  test('cannot be started while a daemon of an earlier run lives on: the daemon is ended', async () => {
    const registry = await started([{ name: 'a', command: ['no-such-program'] }]);
    await untilStatus(registry, inState('crash_looping'));
    const daemon = spawn('sleep', ['600'], {
      env: {
        PATH: env['PATH'],
        HUB_PROCESS_TAG: `${join(world.directory, 'logs', 'service-a.log')}#hub-1#${world.lease.id}`,
      },
    });
    const [, signal] = await once(daemon, 'exit');
    expect(signal).toBe('SIGTERM');
  });

  test('that ignores SIGTERM does not hold up the end of the hub', async () => {
    const entry = { name: 'a', command: app('ignores-sigterm'), stop_timeout: 0.2 };
    const registry = await started([entry]);
    await untilOutput(registry);
    const { pid = 0 } = registry.statusOf('a') ?? {};
    await registry[Symbol.asyncDispose]();
    expect(identifyProcess(pid)).toBeUndefined();
    expect(registry.statusOf('a')?.lastExit?.signal).toBe('SIGKILL');
  });

  test.runIf(requires('root'))(
    'runs as its user, in its world.directory, with its environment',
    async () => {
      const command = [
        'sh',
        '-c',
        'echo $(id -un) $PWD $GREETING $HUB_SERVICE_NAME $USER; sleep 60',
      ];
      const entry = {
        name: 'a',
        command,
        user: 'nobody',
        cwd: '/',
        environment: { GREETING: 'hi' },
      };
      const registry = await started([entry]);
      expect(await untilOutput(registry)).toEqual(['nobody / hi a nobody']);
    },
  );

  test('gets a token that is in no file, not even when it prints it', async () => {
    const command = ['sh', '-c', 'echo token=$HUB_API_TOKEN; sleep 60'];
    const registry = await started([{ name: 'a', command }]);
    const lines = await untilOutput(registry);
    expect(world.tokens.get('a')).toMatch(/^hub_/);
    expect(registry.find('a')?.apiToken?.reveal()).toBe(world.tokens.get('a'));
    expect(lines).toEqual(['token=[secret]']);
  });
});
