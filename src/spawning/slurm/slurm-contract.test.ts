import { describe, test } from 'vitest';
import plugin from '../../../plugins/slurm.ts';
import { spawnerContract } from '../../../test/contract/testing.ts';
import { hasSlurm, useSlurm } from '../../../test/support/slurm.ts';

describe.skipIf(!hasSlurm())('slurm', () => {
  const cluster = useSlurm();
  const engine = {
    takeAway: () => cluster().stopController(),
    bringBack: () => cluster().startController(),
  };
  const names = spawnerContract({ plugin, options: {}, engine }).map(({ name }) => name);

  test.for(names)('keeps the contract: %s', async (name) => {
    const options = { slurm_conf: cluster().configuration, poll_interval: 0.5 };
    await spawnerContract({ plugin, options, engine })
      .find((each) => each.name === name)
      ?.run();
  });
});
