import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { chmod, copyFile, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { env, execPath, kill, memoryUsage } from 'node:process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { nodeCommand } from '../../test/support/node-command.ts';
import { type Cgroups, noCgroups, systemCgroups } from './cgroup.ts';
import { type OutputLog, type OutputLogOptions, openOutputLog } from './output-log.ts';
import { endProcessGroup, livingMembers } from './process-group.ts';
import { identifyProcess, isSameProcess } from './process-identity.ts';
import { measureUsage } from './process-usage.ts';
import { directView, type ProcessView } from './process-view.ts';
import {
  adoptProcess,
  type StartOptions,
  type SupervisedProcess,
  startProcess,
} from './supervised-process.ts';
import { findSystemUser, runsAsRoot } from './system-user.ts';

let directory: string;
let logFile: string;
let output: OutputLog;
const started: SupervisedProcess[] = [];

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'supervised-'));
  logFile = join(directory, 'app.log');
  output = await openOutputLog({ file: logFile });
});
afterEach(async () => {
  await Promise.all(started.splice(0).map((each) => each.stop({ graceMs: 0 })));
  await output[Symbol.asyncDispose]();
  await rm(directory, { recursive: true });
});

function app(name: string, ...rest: string[]): string[] {
  return [
    ...nodeCommand,
    fileURLToPath(new URL(`../../fixtures/apps/${name}.ts`, import.meta.url)),
    ...rest,
  ];
}

function options(command: readonly string[], extra: Partial<StartOptions> = {}): StartOptions {
  const environment = { PATH: env['PATH'] ?? '' };
  return { command, environment, workingDirectory: directory, output, tag: logFile, ...extra };
}

async function start(
  command: readonly string[],
  extra: Partial<StartOptions> = {},
): Promise<SupervisedProcess> {
  const outcome = await startProcess(options(command, extra));
  if (!outcome.started) throw new Error(outcome.reason);
  started.push(outcome.process);
  return outcome.process;
}

async function reopenOutput(extra: Partial<OutputLogOptions>): Promise<void> {
  await output[Symbol.asyncDispose]();
  output = await openOutputLog({ file: logFile, ...extra });
}

async function lineWith(text: string): Promise<string> {
  return vi.waitFor(
    async () => {
      await output.flush();
      const line = output.tail().findLast((each) => each.includes(text));
      if (line === undefined) throw new Error(`no line with ${text}`);
      return line;
    },
    { timeout: 30_000, interval: 20 },
  );
}

const reasonOf = async (command: readonly string[], extra?: Partial<StartOptions>) => {
  const outcome = await startProcess(options(command, extra));
  return outcome.started ? 'started' : outcome.reason;
};

describe('a process that cannot be started is told with its reason', () => {
  test('command not found', async () => {
    expect(await reasonOf(['no-such-program'])).toBe('command not found in PATH: no-such-program');
    expect(await reasonOf(['./no-such-program'])).toBe('command not found: ./no-such-program');
    expect(await reasonOf([])).toBe('the command is empty');
  });

  test('permission denied', async () => {
    const file = join(directory, 'not-executable');
    await writeFile(file, '#!/bin/sh\n', { mode: 0o644 });
    expect(await reasonOf([file])).toBe(`permission denied: ${file} is not executable`);
    expect(await reasonOf([directory])).toBe(`${directory} is a directory, not a program`);
  });

  test('interpreter not found', async () => {
    const file = join(directory, 'script');
    await writeFile(file, '#!/no/such/interpreter\n', { mode: 0o755 });
    expect(await reasonOf([file])).toMatch(/interpreter named in its first line does not exist/);
  });

  test('directory missing or a file', async () => {
    const missing = join(directory, 'missing');
    expect(await reasonOf(['true'], { workingDirectory: missing })).toBe(
      `the directory ${missing} does not exist`,
    );
    expect(await reasonOf(['true'], { workingDirectory: logFile })).toBe(
      `${logFile} is not a directory`,
    );
  });

  test('a NUL character, or arguments that are too long', async () => {
    expect(await reasonOf(['true', 'a\0b'])).toBe('the command holds a NUL character');
    expect(await reasonOf(['true', 'x'.repeat(4_000_000)])).toMatch(/too long/);
  });
});

describe('a supervised process', () => {
  test('that exits at once is known with its code and its last words', async () => {
    const process = await start(app('exit-at-once', '3'));
    expect(await process.exited).toEqual({ code: 3, signal: null, leftBehind: 0 });
    expect(process.isRunning()).toBe(false);
    expect(output.tail()).toEqual(['started, and done already', 'something is missing']);
  });

  test('that is too fast to look at has an identity all the same', async () => {
    const processes = await Promise.all(Array.from({ length: 20 }, () => start(['true'])));
    for (const { identity, exited } of processes) {
      expect(identity.startTime).toMatch(/\/\d+$/);
      expect(await exited).toMatchObject({ code: 0 });
    }
  });

  test('ends by SIGTERM, and stopping it again does nothing', async () => {
    const process = await start(app('never-listens'));
    await lineWith('running');
    expect(await process.stop({ graceMs: 30_000 })).toEqual({ survivors: [] });
    expect(await process.exited).toEqual({ code: null, signal: 'SIGTERM', leftBehind: 0 });
    expect(await process.stop({ graceMs: 30_000 })).toEqual({ survivors: [] });
  });

  test('that ignores SIGTERM gets SIGKILL after the grace', async () => {
    const process = await start(app('ignores-sigterm'));
    await lineWith('ignoring');
    await process.stop({ graceMs: 3_000 });
    expect(await process.exited).toMatchObject({ signal: 'SIGKILL' });
    expect(output.tail()).toEqual(['ignoring SIGTERM', 'SIGTERM ignored']);
  });

  test('that is stopped by job control still ends by SIGTERM', async () => {
    const process = await start(app('never-listens'));
    await lineWith('running');
    kill(process.identity.pid, 'SIGSTOP');
    await process.stop({ graceMs: 30_000 });
    expect(await process.exited).toMatchObject({ signal: 'SIGTERM' });
  });

  test('takes what it started with it, in its group or as a daemon', async () => {
    const process = await start(app('leaves-children', 'stay'));
    const children = Object.values<number>(JSON.parse(await lineWith('sameGroup')));
    const identities = children.map((pid) => identifyProcess(pid));
    expect(identities).not.toContain(undefined);
    await process.stop({ graceMs: 5_000 });
    expect(identities.map((each) => each && isSameProcess(each))).toEqual([false, false]);
  });

  test('that ends and leaves children behind: they are ended and counted', async () => {
    const process = await start(app('leaves-children'));
    expect(await process.exited).toEqual({ code: 0, signal: null, leftBehind: 2 });
    const children = Object.values<number>(JSON.parse(await lineWith('sameGroup')));
    expect(children.map((pid) => identifyProcess(pid))).toEqual([undefined, undefined]);
    expect(await livingMembers({ groupId: process.identity.pid, tag: logFile })).toEqual([]);
  });

  test('that floods its output fills neither memory nor disk and does not hold up the hub', async () => {
    await reopenOutput({ maxFileBytes: 1024 * 1024, oldFiles: 1 });
    const before = memoryUsage().rss;
    let turns = 0;
    const timer = setInterval(() => {
      turns += 1;
    }, 1);
    await start(app('floods-output', '100'));
    await lineWith('flood is over');
    clearInterval(timer);
    expect(memoryUsage().rss - before).toBeLessThan(60 * 1024 * 1024);
    expect(turns).toBeGreaterThan(5);
    await output.flush();
    const files = (await readdir(directory)).map(
      async (name) => (await stat(join(directory, name))).size,
    );
    const sizes = await Promise.all(files);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(4 * 1024 * 1024);
  });

  test('gets its tag and no other environment than the one given', async () => {
    const print = 'console.log(JSON.stringify(process.env))';
    const process = await start([execPath, '-e', print], { environment: { ONLY: 'this' } });
    await process.exited;
    expect(JSON.parse(output.tail()[0] ?? '')).toEqual({ ONLY: 'this', HUB_PROCESS_TAG: logFile });
  });

  test('does not begin when its hub is killed right after the fork', async () => {
    const begun = join(directory, 'begun');
    const [program = '', ...rest] = app(
      'dies-at-fork',
      logFile,
      'sh',
      '-c',
      `touch ${begun}; sleep 600`,
    );
    const hub = spawn(program, rest, { stdio: ['ignore', 'pipe', 'inherit'] });
    const [line] = await once(createInterface(hub.stdout), 'line');
    const pid = Number(line);
    try {
      await expect.poll(() => identifyProcess(pid), { timeout: 30_000 }).toBeUndefined();
      expect(await readdir(directory)).not.toContain('begun');
    } finally {
      if (identifyProcess(pid) !== undefined) kill(-pid, 'SIGKILL');
    }
  });

  test('does not begin when it is refused at the last moment', async () => {
    const refusal = () => 'too late';
    expect(await reasonOf(['true'], { refusal })).toBe('too late');
  });

  test('is measured with all it started', async () => {
    const process = await start(app('leaves-children', 'stay'));
    await lineWith('sameGroup');
    const gone = 4_194_305;
    const usage = await measureUsage([process.identity.pid, gone]);
    expect(usage.get(process.identity.pid)).toMatchObject({ processes: 3 });
    expect(usage.get(process.identity.pid)?.memoryBytes).toBeGreaterThan(30 * 1024 * 1024);
    expect(usage.has(gone)).toBe(false);
  });
});

const canMakeCgroups = (await systemCgroups.make('trial')) !== undefined;
await systemCgroups.remove('trial');

describe('daemons that a process leaves behind', () => {
  const daemonizes = (...how: string[]) => [
    'perl',
    fileURLToPath(new URL('../../fixtures/apps/daemonizes.pl', import.meta.url)),
    ...how,
  ];

  async function daemons(): Promise<readonly number[]> {
    await output.flush();
    return output.tail().flatMap((line) => {
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
    const process = await start(daemonizes('settled'), { view, cgroups: noCgroups });
    expect(await process.exited).toMatchObject(endedWithDaemon);
    expect(await daemons()).toHaveLength(1);
    expect(await survivors()).toEqual([]);
  });

  test('are all ended, of many that daemonize at the same time and ignore SIGTERM', async () => {
    const many = Array.from({ length: 20 }, () =>
      start(daemonizes('deaf'), { cgroups: noCgroups, tag: randomUUID() }),
    );
    const ends = await Promise.all((await Promise.all(many)).map(({ exited }) => exited));
    expect(ends).toMatchObject(many.map(() => endedWithDaemon));
    expect(await survivors()).toEqual([]);
  });

  describe.runIf(canMakeCgroups)('where the hub may make cgroups', () => {
    test.each(['settled clean', 'settled clean deaf'])(
      'are found also with an empty environment (%s)',
      async (how) => {
        const process = await start(daemonizes(...how.split(' ')));
        expect(await process.exited).toMatchObject(endedWithDaemon);
        expect(await daemons()).toHaveLength(1);
        expect(await survivors()).toEqual([]);
      },
    );

    test('are ended along with a server that is stopped by another hub than the one that started it', async () => {
      const process = await start(daemonizes('settled', 'clean', 'stay'));
      await lineWith('daemon');
      const ended = await endProcessGroup({ groupId: undefined, tag: logFile }, { graceMs: 1_000 });
      expect(ended).toEqual({ found: expect.toSatisfy((found) => found >= 2), survivors: [] });
      await process.exited;
      expect(await survivors()).toEqual([]);
    });

    test.runIf(runsAsRoot())('are found also when they run as another user', async () => {
      await chmod(directory, 0o755);
      const user = await findSystemUser('nobody');
      const command = daemonizes('clean').slice(1);
      const script = join(directory, 'daemonizes.pl');
      await copyFile(command[0] ?? '', script);
      await chmod(script, 0o644);
      const process = await start(['perl', script, 'settled', 'clean'], { user });
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
      const brief = await start(['true'], { view });
      await brief.exited;
      expect(view.looks).toBe(1);
      const lasting = await start(['sh', '-c', 'echo joined; exec sleep 600'], { view });
      await lineWith('joined');
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
      const process = await start(daemonizes('settled'), { view: lateView(2), cgroups });
      expect(await process.exited).toMatchObject(endedWithDaemon);
      expect(await survivors()).toEqual([]);
    });

    test.runIf(runsAsRoot())('are looked for again when one was outside of it', async () => {
      const view = countingView();
      const folder = dirname((await systemCgroups.make(logFile))?.folders[0] ?? '');
      const script = `echo $$ >${folder}/cgroup.procs; echo outside; exec sleep 600`;
      const process = await start(['/bin/sh', '-c', script], { view });
      await lineWith('outside');
      await process.stop({ graceMs: 60_000 });
      expect(view.looks).toBe(4);
    });

    test('leave no cgroup behind', async () => {
      const process = await start(daemonizes('clean'));
      const folder = (await systemCgroups.make(logFile))?.folders[0];
      await process.exited;
      expect(folder).toContain('/hub-');
      await expect(stat(folder ?? '')).rejects.toThrow('ENOENT');
    });
  });
});

describe.runIf(runsAsRoot())('a process of another user', () => {
  test('has its user and group ids, and none of root', async () => {
    const user = await findSystemUser('nobody');
    await chmod(directory, 0o755);
    const process = await start(['/bin/sh', '-c', 'id -u; id -g; id -G'], { user });
    await process.exited;
    const ids = [user?.userId, user?.groupId, user?.groupIds.join(' ')].map(String);
    expect(output.tail()).toEqual(ids);
    expect((await stat(logFile)).uid).toBe(user?.userId);
  });

  test('keeps its further groups', async () => {
    const nobody = await findSystemUser('nobody');
    if (nobody === undefined) throw new Error('this machine has no user nobody');
    const user = { ...nobody, groupIds: [nobody.groupId, 4, 24] };
    const process = await start(['/bin/sh', '-c', 'id -u; id -G'], { user });
    await process.exited;
    expect(output.tail()).toEqual([String(user.userId), user.groupIds.join(' ')]);
  });

  test('may reopen its standard error', async () => {
    const user = await findSystemUser('nobody');
    const process = await start(['/bin/sh', '-c', 'echo again >> /dev/stderr'], { user });
    expect(await process.exited).toMatchObject({ code: 0 });
    expect(output.tail()).toEqual(['again']);
  });

  test('that it may not execute: the reason names the user', async () => {
    const file = join(directory, 'for-root-only');
    await writeFile(file, '#!/bin/sh\n', { mode: 0o700 });
    await chmod(directory, 0o755);
    const user = await findSystemUser('nobody');
    expect(await reasonOf([file], { user })).toBe(`permission denied for user nobody: ${file}`);
    await chmod(file, 0o755);
    await chmod(directory, 0o700);
    expect(await reasonOf([file], { user })).toBe(
      `permission denied for user nobody: ${file} (${directory} is closed to it)`,
    );
  });
});

describe('a process whose supervisor is killed', () => {
  let supervisor: ChildProcess | undefined;
  afterEach(() => supervisor?.kill('SIGKILL'));

  async function orphan(command: readonly string[]) {
    await output[Symbol.asyncDispose]();
    const [program = '', ...rest] = app('supervises', logFile, ...command);
    supervisor = spawn(program, rest, { stdio: ['ignore', 'pipe', 'inherit'] });
    if (supervisor.stdout === null) throw new Error('the supervisor has no output');
    const [line] = await once(createInterface(supervisor.stdout), 'line');
    supervisor.kill('SIGKILL');
    await once(supervisor, 'exit');
    output = await openOutputLog({ file: logFile });
    return JSON.parse(String(line));
  }

  test('runs on, is adopted by pid and start time, is still heard, and can be stopped', async () => {
    const identity = await orphan(app('counts'));
    await lineWith('counting');
    const adopted = adoptProcess({ identity, tag: logFile, output });
    expect(adopted?.isRunning()).toBe(true);
    kill(identity.pid, 'SIGUSR1');
    await lineWith('count 1');
    await adopted?.stop({ graceMs: 10_000 });
    expect(await adopted?.exited).toEqual({ code: null, signal: null, leftBehind: 0 });
    expect(isSameProcess(identity)).toBe(false);
  });

  test('whose end is noticed when it ends by itself', async () => {
    const identity = await orphan(app('counts'));
    const adopted = adoptProcess({ identity, tag: logFile, output });
    kill(identity.pid, 'SIGKILL');
    expect(await adopted?.exited).toMatchObject({ code: null, signal: null });
    expect(adopted?.isRunning()).toBe(false);
  });

  test('is not adopted when its pid belongs to another program now', async () => {
    const identity = await orphan(app('counts'));
    await lineWith('counting');
    const other = { pid: identity.pid, startTime: `${identity.startTime}1` };
    expect(adoptProcess({ identity: other, tag: logFile, output })).toBeUndefined();
    expect(isSameProcess(identity)).toBe(true);
    await adoptProcess({ identity, tag: logFile, output })?.stop({ graceMs: 0 });
  });
});
