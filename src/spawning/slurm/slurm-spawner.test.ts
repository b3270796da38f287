import { readFile, writeFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { hasSlurm, useSlurm } from '../../../test/support/slurm.ts';
import { createTestSpawner } from '../../../test/support/test-spawner.ts';
import type { Spawner } from '../../plugin/host/spawner.ts';
import { jobArguments } from './job-arguments.ts';
import { chooseFor, type SlurmOptions } from './slurm-options.ts';
import { slurmPlugin } from './slurm-plugin.ts';

test('a job asks for the GPUs of the profile', () => {
  const job = { name: 'hub-ann', comment: '', outputFile: '/dev/null' };
  const gresOf = (gpus: number | undefined, profileOptions: object) => {
    const limits = gpus === undefined ? {} : { gpus };
    const options = slurmPlugin.optionsSchema.parse({}) as SlurmOptions;
    const chosen = chooseFor(options, { profileOptions, userOptions: {} });
    const words = jobArguments({ limits, guarantees: {} }, chosen, job);
    return words.filter((word) => word.startsWith('--gres'));
  };
  expect(gresOf(2, {})).toEqual(['--gres=gpu:2']);
  expect(gresOf(2, { gres: 'gpu:a100:1' })).toEqual(['--gres=gpu:a100:1']);
  expect(gresOf(undefined, {})).toEqual([]);
});

describe.skipIf(!hasSlurm())('hub doctor looks at Slurm', () => {
  const cluster = useSlurm();

  async function examine(options: object, profiles: readonly object[] = []) {
    const created = await createTestSpawner(slurmPlugin, {
      slurm_conf: cluster().configuration,
      ...options,
    });
    await using spawner = created.spawner as Spawner & AsyncDisposable;
    const entries = [{}, ...profiles].map((profile, index) => [`${index}`, profile] as const);
    const signal = AbortSignal.timeout(60_000);
    const found = (await spawner.examine?.({ signal, profileOptions: new Map(entries) })) ?? [];
    return Object.fromEntries(
      found.map(({ check, state, detail }) => [check, `${state} ${detail}`]),
    );
  }

  test('which answers, and says which partitions take no jobs', async () => {
    const profiles = [{ partition: 'closed' }, { partition: 'nowhere' }];
    expect(await examine({ choosable_partitions: ['short'] }, profiles)).toEqual({
      programs: expect.stringMatching(/^ok sbatch, squeue, scancel, scontrol of slurm/),
      controller: 'ok answers; 0 jobs wait',
      'partition short': 'ok takes and runs jobs',
      'partition closed': 'warning is DOWN: jobs there do not start',
      'partition nowhere': 'failed is not there',
    });
  });

  test('whose controller is down, or which takes no credentials of munge', async () => {
    await cluster().stopController();
    try {
      const { controller } = await examine({});
      expect(controller).toMatch(/^failed .*Unable to contact slurm controller/);
    } finally {
      await cluster().startController();
    }
    const configuration = `${cluster().configuration}.without-munge`;
    const text = await readFile(cluster().configuration, 'utf8');
    await writeFile(configuration, text.replace(/^AuthInfo=.*$/m, 'AuthInfo=socket=/nowhere'));
    const { controller } = await examine({ slurm_conf: configuration });
    expect(controller).toMatch(/^failed .*(munge|auth)/i);
  });
});
