import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import plugin from '../../../plugins/slurm.ts';
import { createSpawnRequest } from '../../../test/contract/spawn-request.ts';
import { spawnerContract } from '../../../test/contract/testing.ts';
import { hasSlurm, useSlurm } from '../../../test/support/slurm.ts';
import { until } from '../../../test/support/test-hub.ts';
import { createTestSpawner } from '../../../test/support/test-spawner.ts';

describe.skipIf(!hasSlurm())('slurm', () => {
  const cluster = useSlurm();
  const engine = {
    takeAway: () => cluster().stopController(),
    bringBack: () => cluster().startController(),
  };
  const names = spawnerContract({ plugin, options: {}, engine }).map(({ name }) => name);

  test.for(names)('keeps the contract: %s', async (name) => {
    const options = { slurm_conf: cluster().configuration, poll_interval: 0.2 };
    await spawnerContract({ plugin, options, engine })
      .find((each) => each.name === name)
      ?.run();
  });

  const listed = async () =>
    (await cluster().run('squeue', '--noheader', '--format=%i %T')).trim().split('\n');

  async function create(bin_directory: string) {
    const options = { slurm_conf: cluster().configuration, poll_interval: 0.5, bin_directory };
    const { spawner } = await createTestSpawner(plugin, options);
    onTestFinished(() => spawner[Symbol.asyncDispose]?.());
    return spawner;
  }

  test('a job rests and goes on, as often as it is asked for, and ends while it rests', async () => {
    const spawner = await create('/usr/bin');
    const { state, exited } = await spawner.start(
      createSpawnRequest({
        command: ['sleep', '1000'],
        awaitAddress: async () => 'http://127.0.0.1:1',
      }),
    );
    const job = async () => (await listed()).find((line) => line.startsWith(`${state['jobId']} `));
    await until(async () => (await job())?.endsWith(' RUNNING') === true, 'the job runs');
    for (const isPaused of [true, true, false, false, true]) {
      if (isPaused) expect(await spawner.pause?.(state)).toBe(true);
      else await spawner.unpause?.(state);
      expect(await job()).toMatch(isPaused ? / SUSPENDED$/ : / RUNNING$/);
      expect(await spawner.poll(state)).toEqual({ running: true });
    }
    await spawner.stop(state, { graceMs: 20_000, signal: AbortSignal.timeout(30_000) });
    await exited;
    await expect(spawner.pause?.(state)).rejects.toThrow();
  });

  test('a job that survives scancel is told of, and its server does not run a second time', async () => {
    const programs = mkdtempSync(join(tmpdir(), 'hub-slurm-programs-'));
    onTestFinished(() => rmSync(programs, { recursive: true, force: true }));
    for (const name of ['sbatch', 'squeue', 'scontrol'])
      symlinkSync(`/usr/bin/${name}`, join(programs, name));
    writeFileSync(join(programs, 'scancel'), '#!/bin/sh\nexit 0\n', { mode: 0o755 });
    // As with programs that hang in the kernel: it has no end, however often it is told.
    const broken = await create(programs);
    const whole = await create('/usr/bin');
    const url = Promise.withResolvers<string>();
    const request = (signal = AbortSignal.timeout(30_000)) =>
      createSpawnRequest({ command: ['sleep', '1000'], signal, awaitAddress: () => url.promise });

    url.resolve('http://127.0.0.1:1');
    const { state } = await broken.start(request());
    const isRunning = async ({ jobId }: typeof state) =>
      (await listed()).includes(`${jobId} RUNNING`);
    await until(() => isRunning(state), 'the job runs');
    const ending = () => ({ graceMs: 0, signal: AbortSignal.timeout(2_000) });
    const sentence = `The job ${state['jobId']} could not be ended: Slurm still lists it.`;
    await expect(broken.stop(state, ending())).rejects.toThrow(sentence);
    await expect(broken.start(request(AbortSignal.timeout(2_000)))).rejects.toThrow(sentence);
    // A hub that was started in between knows nothing of it.
    const next = await create(programs);
    await expect(next.start(request(AbortSignal.timeout(2_000)))).rejects.toThrow(sentence);
    expect(await listed()).toEqual([`${state['jobId']} RUNNING`]);

    const second = await whole.start(request());
    await until(() => isRunning(second.state), 'the second job runs');
    expect(await listed()).toHaveLength(1);
    await whole.stop(second.state, { graceMs: 0, signal: AbortSignal.timeout(30_000) });
  });
});
