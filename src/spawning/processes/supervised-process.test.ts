import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { chmod, copyFile, readdir, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { execPath, kill, memoryUsage } from 'node:process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, test } from 'vitest';
import { offers, pathOf, requires } from '../../../test/support/requires.ts';
import { app } from '../../../test/support/service-worlds.ts';
import { useSupervision } from '../../../test/support/supervision-world.ts';
import { identifyProcess, isSameProcess } from '../../platform/process-table/process-table.ts';
import { text } from '../../platform/texts/text.ts';
import { type Cgroups, noCgroups, systemCgroups } from './cgroup.ts';
import { endProcessGroup, livingMembers } from './process-group.ts';
import { measureUsage } from './process-usage.ts';
import { directView, type ProcessView } from './process-view.ts';
import { type StartOptions, startProcess } from './supervised-process.ts';
import { findSystemUser } from './system-user.ts';

const world = useSupervision();

const reasonOf = async (command: readonly string[], extra?: Partial<StartOptions>) => {
  const outcome = await startProcess(world.options(command, extra));
  return outcome.started ? 'started' : String(outcome.reason);
};

describe('a process that cannot be started is told with its reason', () => {
  test('command not found', async () => {
    expect(await reasonOf(['no-such-program'])).toBe('command not found in PATH: no-such-program');
    expect(await reasonOf(['./no-such-program'])).toBe('command not found: ./no-such-program');
    expect(await reasonOf([])).toBe('the command is empty');
  });

  test('permission denied', async () => {
    const file = join(world.directory, 'not-executable');
    await writeFile(file, '#!/bin/sh\n', { mode: 0o644 });
    expect(await reasonOf([file])).toBe(`permission denied: ${file} is not executable`);
    expect(await reasonOf([world.directory])).toBe(
      `${world.directory} is a directory, not a program`,
    );
  });

  test('interpreter not found', async () => {
    const file = join(world.directory, 'script');
    await writeFile(file, '#!/no/such/interpreter\n', { mode: 0o755 });
    expect(await reasonOf([file])).toMatch(/interpreter named in its first line does not exist/);
  });

  test('directory missing or a file', async () => {
    const missing = join(world.directory, 'missing');
    expect(await reasonOf(['true'], { workingDirectory: missing })).toBe(
      `the directory ${missing} does not exist`,
    );
    expect(await reasonOf(['true'], { workingDirectory: world.logFile })).toBe(
      `${world.logFile} is not a directory`,
    );
  });

  test('a NUL character, or arguments that are too long', async () => {
    expect(await reasonOf(['true', 'a\0b'])).toBe('the command holds a NUL character');
    expect(await reasonOf(['true', 'x'.repeat(4_000_000)])).toMatch(/too long/);
  });
});

describe('a supervised process', () => {
  test('that exits at once is known with its code and its last words', async () => {
    const process = await world.start(app('exit-at-once', '3'));
    expect(await process.exited).toEqual({ code: 3, signal: null, leftBehind: 0 });
    expect(process.isRunning()).toBe(false);
    expect(world.output.tail()).toEqual(['started, and done already', 'something is missing']);
  });

  test('that is too fast to look at has an identity all the same', async () => {
    const processes = await Promise.all(Array.from({ length: 20 }, () => world.start(['true'])));
    for (const { identity, exited } of processes) {
      expect(identity.startTime).toMatch(/\/\d+$/);
      expect(await exited).toMatchObject({ code: 0 });
    }
  });

  test('ends by SIGTERM, and stopping it again does nothing', async () => {
    const process = await world.start(app('never-listens'));
    await world.lineWith('running');
    expect(await process.stop({ graceMs: 30_000 })).toEqual({ survivors: [] });
    expect(await process.exited).toEqual({ code: null, signal: 'SIGTERM', leftBehind: 0 });
    expect(await process.stop({ graceMs: 30_000 })).toEqual({ survivors: [] });
  });

  test('that ignores SIGTERM gets SIGKILL after the grace', async () => {
    const process = await world.start(app('ignores-sigterm'));
    await world.lineWith('ignoring');
    await process.stop({ graceMs: 3_000 });
    expect(await process.exited).toMatchObject({ signal: 'SIGKILL' });
    expect(world.output.tail()).toEqual(['ignoring SIGTERM', 'SIGTERM ignored']);
  });

  test('that is stopped by job control still ends by SIGTERM', async () => {
    const process = await world.start(app('never-listens'));
    await world.lineWith('running');
    kill(process.identity.pid, 'SIGSTOP');
    await process.stop({ graceMs: 30_000 });
    expect(await process.exited).toMatchObject({ signal: 'SIGTERM' });
  });

  test('takes what it started with it, in its group or as a daemon', async () => {
    const process = await world.start(app('leaves-children', 'stay'));
    const children = Object.values<number>(JSON.parse(await world.lineWith('sameGroup')));
    const identities = children.map((pid) => identifyProcess(pid));
    expect(identities).not.toContain(undefined);
    await process.stop({ graceMs: 5_000 });
    expect(identities.map((each) => each && isSameProcess(each))).toEqual([false, false]);
  });

  test('that ends and leaves children behind: they are ended and counted', async () => {
    const process = await world.start(app('leaves-children'));
    expect(await process.exited).toEqual({ code: 0, signal: null, leftBehind: 2 });
    const children = Object.values<number>(JSON.parse(await world.lineWith('sameGroup')));
    expect(children.map((pid) => identifyProcess(pid))).toEqual([undefined, undefined]);
    expect(await livingMembers({ groupId: process.identity.pid, tag: world.logFile })).toEqual([]);
  });

  test('that floods its output fills neither memory nor disk and does not hold up the hub', async () => {
    await world.reopenOutput({ maxFileBytes: 1024 * 1024, oldFiles: 1 });
    const before = memoryUsage().rss;
    let turns = 0;
    const timer = setInterval(() => {
      turns += 1;
    }, 1);
    await world.start(app('floods-output', '100'));
    await world.lineWith('flood is over');
    clearInterval(timer);
    expect(memoryUsage().rss - before).toBeLessThan(60 * 1024 * 1024);
    expect(turns).toBeGreaterThan(5);
    await world.output.flush();
    const files = (await readdir(world.directory)).map(
      async (name) => (await stat(join(world.directory, name))).size,
    );
    const sizes = await Promise.all(files);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(4 * 1024 * 1024);
  });

  test('gets its tag and no other environment than the one given', async () => {
    const print = 'console.log(JSON.stringify(process.env))';
    const process = await world.start([execPath, '-e', print], { environment: { ONLY: 'this' } });
    await process.exited;
    expect(JSON.parse(world.output.tail()[0] ?? '')).toEqual({
      ONLY: 'this',
      HUB_PROCESS_TAG: world.logFile,
    });
  });

  test('does not begin when its hub is killed right after the fork', async () => {
    const begun = join(world.directory, 'begun');
    const [program = '', ...rest] = app(
      'dies-at-fork',
      world.logFile,
      'sh',
      '-c',
      `touch ${begun}; sleep 600`,
    );
    const hub = spawn(program, rest, { stdio: ['ignore', 'pipe', 'inherit'] });
    const [line] = await once(createInterface(hub.stdout), 'line');
    const pid = Number(line);
    try {
      await expect.poll(() => identifyProcess(pid)).toBeUndefined();
      expect(await readdir(world.directory)).not.toContain('begun');
    } finally {
      if (identifyProcess(pid) !== undefined) kill(-pid, 'SIGKILL');
    }
  });

  test('does not begin when it is refused at the last moment', async () => {
    const refusal = () => text`too late`;
    expect(await reasonOf(['true'], { refusal })).toBe('too late');
  });

  test('is measured with all it started', async () => {
    const process = await world.start(app('leaves-children', 'stay'));
    await world.lineWith('sameGroup');
    const gone = 4_194_305;
    const usage = await measureUsage([process.identity.pid, gone]);
    expect(usage.get(process.identity.pid)).toMatchObject({ processes: 3 });
    expect(usage.get(process.identity.pid)?.memoryBytes).toBeGreaterThan(30 * 1024 * 1024);
    expect(usage.has(gone)).toBe(false);
  });
});

const canMakeCgroups = offers('cgroups', (await systemCgroups.make('trial')) !== undefined);
await systemCgroups.remove('trial');

describe.runIf(requires('perl'))('daemons that a process leaves behind', () => {
  const daemonizes = (...how: string[]) => [
    pathOf('perl'),
    fileURLToPath(new URL('../../../fixtures/apps/daemonizes.pl', import.meta.url)),
    ...how,
  ];

  async function daemons(): Promise<readonly number[]> {
    await world.output.flush();
    return world.output.tail().flatMap((line) => {
      const [, pid] = /^daemon (\d+)$/.exec(line) ?? [];
      return pid === undefined ? [] : [Number(pid)];
    });
  }

  async function survivors(): Promise<readonly number[]> {
    return (await daemons()).filter((pid) => identifyProcess(pid) !== undefined);
  }

  afterEach(async () => {
    for (const pid of await survivors()) kill(pid, 'SIGKILL');
  });

  /** What stands between the daemon and the leader may be seen as well. */
  const endedWithDaemon = { code: 0, leftBehind: expect.toSatisfy((found) => found >= 1) };

  /** A process table that is read at the wrong moment: at first it shows nothing that is tagged. */
  function lateView(looksInVain: number): ProcessView {
    let looks = 0;
    return {
      ...directView,
      async taggedWith(tag) {
        looks += 1;
        return looks <= looksInVain ? [] : directView.taggedWith(tag);
      },
    };
  }

  test.each([1, 2])('are found also when %i looks come at the wrong moment', async (looks) => {
    const view = lateView(looks);
    const process = await world.start(daemonizes('settled'), { view, cgroups: noCgroups });
    expect(await process.exited).toMatchObject(endedWithDaemon);
    expect(await daemons()).toHaveLength(1);
    expect(await survivors()).toEqual([]);
  });

  test('are all ended, of many that daemonize at the same time and ignore SIGTERM', async () => {
    const many = Array.from({ length: 20 }, () =>
      world.start(daemonizes('deaf'), { cgroups: noCgroups, tag: randomUUID() }),
    );
    const ends = await Promise.all((await Promise.all(many)).map(({ exited }) => exited));
    expect(ends).toMatchObject(many.map(() => endedWithDaemon));
    expect(await survivors()).toEqual([]);
  });

  describe.runIf(canMakeCgroups)('where the hub may make cgroups', () => {
    test.each(['settled clean', 'settled clean deaf'])(
      'are found also with an empty environment (%s)',
      async (how) => {
        const process = await world.start(daemonizes(...how.split(' ')));
        expect(await process.exited).toMatchObject(endedWithDaemon);
        expect(await daemons()).toHaveLength(1);
        expect(await survivors()).toEqual([]);
      },
    );

    test('are ended along with a server that is stopped by another hub than the one that started it', async () => {
      const process = await world.start(daemonizes('settled', 'clean', 'stay'));
      await world.lineWith('daemon');
      const ended = await endProcessGroup(
        { groupId: undefined, tag: world.logFile },
        { graceMs: 1_000 },
      );
      expect(ended).toEqual({ found: expect.toSatisfy((found) => found >= 2), survivors: [] });
      await process.exited;
      expect(await survivors()).toEqual([]);
    });

    test.runIf(requires('root'))('are found also when they run as another user', async () => {
      await chmod(world.directory, 0o755);
      const user = await findSystemUser('nobody');
      const command = daemonizes('clean').slice(1);
      const script = join(world.directory, 'daemonizes.pl');
      await copyFile(command[0] ?? '', script);
      await chmod(script, 0o644);
      const process = await world.start([pathOf('perl'), script, 'settled', 'clean'], { user });
      expect(await process.exited).toMatchObject(endedWithDaemon);
      expect(await daemons()).toHaveLength(1);
      expect(await survivors()).toEqual([]);
    });

    /** Counts the looks at the tags of all processes. */
    function countingView() {
      const view = {
        ...directView,
        looks: 0,
        async taggedWith(tag: string) {
          view.looks += 1;
          return directView.taggedWith(tag);
        },
      };
      return view;
    }

    test('are not looked for again when their cgroup shows that all have ended', async () => {
      const view = countingView();
      const brief = await world.start(['true'], { view });
      await brief.exited;
      expect(view.looks).toBe(1);
      const lasting = await world.start(['sh', '-c', 'echo joined; exec sleep 600'], { view });
      await world.lineWith('joined');
      await lasting.stop({ graceMs: 60_000 });
      expect(view.looks).toBe(3);
    });

    test('are looked for again when the leader could not join its cgroup', async () => {
      const cgroups: Cgroups = {
        ...systemCgroups,
        async make(tag) {
          await systemCgroups.make(tag);
          return undefined;
        },
      };
      const process = await world.start(daemonizes('settled'), { view: lateView(2), cgroups });
      expect(await process.exited).toMatchObject(endedWithDaemon);
      expect(await survivors()).toEqual([]);
    });

    test.runIf(requires('root'))('are looked for again when one was outside of it', async () => {
      const view = countingView();
      const folder = dirname((await systemCgroups.make(world.logFile))?.folders[0] ?? '');
      const script = `echo $$ >${folder}/cgroup.procs; echo outside; exec sleep 600`;
      const process = await world.start(['/bin/sh', '-c', script], { view });
      await world.lineWith('outside');
      await process.stop({ graceMs: 60_000 });
      expect(view.looks).toBe(4);
    });

    test('leave no cgroup behind', async () => {
      const process = await world.start(daemonizes('clean'));
      const folder = (await systemCgroups.make(world.logFile))?.folders[0];
      await process.exited;
      expect(folder).toContain('/hub-');
      await expect(stat(folder ?? '')).rejects.toThrow('ENOENT');
    });
  });
});

describe.runIf(requires('root'))('a process of another user', () => {
  test('has its user and group ids, and none of root', async () => {
    const user = await findSystemUser('nobody');
    await chmod(world.directory, 0o755);
    const process = await world.start(['/bin/sh', '-c', 'id -u; id -g; id -G'], { user });
    await process.exited;
    const ids = [user?.userId, user?.groupId, user?.groupIds.join(' ')].map(String);
    expect(world.output.tail()).toEqual(ids);
    expect((await stat(world.logFile)).uid).toBe(user?.userId);
  });

  test.skipIf(!requires('setpriv'))('keeps its further groups', async () => {
    const nobody = await findSystemUser('nobody');
    if (nobody === undefined) throw new Error('this machine has no user nobody');
    const user = { ...nobody, groupIds: [nobody.groupId, 4, 24] };
    const process = await world.start(['/bin/sh', '-c', 'id -u; id -G'], { user });
    await process.exited;
    expect(world.output.tail()).toEqual([String(user.userId), user.groupIds.join(' ')]);
  });

  test('may reopen its standard error', async () => {
    const user = await findSystemUser('nobody');
    const process = await world.start(['/bin/sh', '-c', 'echo again >> /dev/stderr'], { user });
    expect(await process.exited).toMatchObject({ code: 0 });
    expect(world.output.tail()).toEqual(['again']);
  });

  test('that it may not execute: the reason names the user', async () => {
    const file = join(world.directory, 'for-root-only');
    await writeFile(file, '#!/bin/sh\n', { mode: 0o700 });
    await chmod(world.directory, 0o755);
    const user = await findSystemUser('nobody');
    expect(await reasonOf([file], { user })).toBe(`permission denied for user nobody: ${file}`);
    await chmod(file, 0o755);
    await chmod(world.directory, 0o700);
    expect(await reasonOf([file], { user })).toBe(
      `permission denied for user nobody: ${file} (${world.directory} is closed to it)`,
    );
  });
});
