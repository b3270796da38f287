import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { kill } from 'node:process';
import { createInterface } from 'node:readline';
import { afterEach, describe, expect, test } from 'vitest';
import { app } from '../../../test/support/service-worlds.ts';
import { useSupervision } from '../../../test/support/supervision-world.ts';
import { isSameProcess } from '../../platform/process-table/process-table.ts';
import { adoptProcess } from './supervised-process.ts';

const world = useSupervision();

describe('a process whose supervisor is killed', () => {
  let supervisor: ChildProcess | undefined;
  afterEach(() => supervisor?.kill('SIGKILL'));

  async function orphan(command: readonly string[]) {
    let line: unknown;
    await world.reopenOutput({}, async () => {
      const [program = '', ...rest] = app('supervises', world.logFile, ...command);
      supervisor = spawn(program, rest, { stdio: ['ignore', 'pipe', 'inherit'] });
      if (supervisor.stdout === null) throw new Error('the supervisor has no output');
      [line] = await once(createInterface(supervisor.stdout), 'line');
      supervisor.kill('SIGKILL');
      await once(supervisor, 'exit');
    });
    return JSON.parse(String(line));
  }

  test('runs on, is adopted by pid and start time, is still heard, and can be stopped', async () => {
    const identity = await orphan(app('counts'));
    await world.lineWith('counting');
    const adopted = adoptProcess({ identity, tag: world.logFile, output: world.output });
    expect(adopted?.isRunning()).toBe(true);
    kill(identity.pid, 'SIGUSR1');
    await world.lineWith('count 1');
    await adopted?.stop({ graceMs: 10_000 });
    expect(await adopted?.exited).toEqual({ code: null, signal: null, leftBehind: 0 });
    expect(isSameProcess(identity)).toBe(false);
  });

  test('whose end is noticed when it ends by itself', async () => {
    const identity = await orphan(app('counts'));
    const adopted = adoptProcess({ identity, tag: world.logFile, output: world.output });
    kill(identity.pid, 'SIGKILL');
    expect(await adopted?.exited).toMatchObject({ code: null, signal: null });
    expect(adopted?.isRunning()).toBe(false);
  });

  test('is not adopted when its pid belongs to another program now', async () => {
    const identity = await orphan(app('counts'));
    await world.lineWith('counting');
    const other = { pid: identity.pid, startTime: `${identity.startTime}1` };
    expect(
      adoptProcess({ identity: other, tag: world.logFile, output: world.output }),
    ).toBeUndefined();
    expect(isSameProcess(identity)).toBe(true);
    await adoptProcess({ identity, tag: world.logFile, output: world.output })?.stop({
      graceMs: 0,
    });
  });
});
