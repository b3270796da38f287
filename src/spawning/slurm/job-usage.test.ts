import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { pathOf, requires } from '../../../test/support/requires.ts';
import { hasSlurm, useSlurm } from '../../../test/support/slurm.ts';
import { until } from '../../../test/support/test-hub.ts';
import { createTestSpawner } from '../../../test/support/test-spawner.ts';
import type { ResourceUsage } from '../../plugin/host/spawner.ts';
import { createJobUsage } from './job-usage.ts';
import { createSlurmCommands, type Measurement, type SlurmCommands } from './slurm-commands.ts';
import { slurmPlugin } from './slurm-plugin.ts';

function openUsage(measureJobs: SlurmCommands['measureJobs']) {
  const clock = { ms: 0 };
  const asked: (readonly string[])[] = [];
  const logged: string[] = [];
  const record = (_fields: object, message: string) => void logged.push(message);
  const log = { debug: record, info: record, warn: record, error: record };
  const counted: SlurmCommands['measureJobs'] = (ids) => {
    asked.push(ids);
    return measureJobs(ids);
  };
  const usage = createJobUsage({ measureJobs: counted }, { log, now: () => clock.ms });
  return { usage, clock, asked, logged };
}

/** A folder of programs, by their names, which are scripts of the shell. */
function programFolder(programs: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'hub-slurm-programs-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  for (const [name, script] of Object.entries(programs)) {
    writeFileSync(join(folder, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  }
  return folder;
}

const measured = (jobId: string, cpuSeconds: number): Measurement => ({
  figures: [{ jobId, cpuSeconds, memoryBytes: 1_000 }],
  refusal: undefined,
});

test('cores are the CPU time between readings; a job that begins again is measured from there', async () => {
  const used = [100, 109, 118, 127, 136, 3, 8];
  const { usage, clock } = openUsage(async () => measured('7', used.shift() ?? 0));
  const cores: (number | undefined)[] = [];
  while (used.length > 0) {
    cores.push((await usage([{ jobId: '7' }]))[0]?.cpuCores);
    clock.ms += 10_000;
  }
  expect(cores).toEqual([undefined, 0.9, 0.9, 0.9, 0.9, undefined, 0.5]);
});

test('Slurm is asked at most every 9 seconds, and less often where its answer takes long', async () => {
  let takesMs = 0;
  const opened = openUsage(async () => {
    clock.ms += takesMs;
    return measured('7', 1);
  });
  const { usage, clock, asked } = opened;
  const askAfter = async (ms: number) => {
    clock.ms += ms;
    await usage([{ jobId: '7' }, {}, { jobId: '7,8' }, { jobId: '9' }]);
    return asked.length;
  };
  expect(await askAfter(0)).toBe(1);
  expect(asked[0]).toEqual(['7', '9']);
  expect(await askAfter(8_999)).toBe(1);
  takesMs = 4_000;
  expect(await askAfter(1)).toBe(2);
  expect(await askAfter(39_999)).toBe(2);
  expect(await askAfter(1)).toBe(3);
});

test('without sstat there are no figures, which is said once', async () => {
  const bin_directory = programFolder({ squeue: 'exit 1' });
  const { spawner, logged } = await createTestSpawner(slurmPlugin, { bin_directory });
  onTestFinished(() => spawner[Symbol.asyncDispose]?.());
  for (let round = 0; round < 3; round += 1) {
    expect(await spawner.usage?.([{ jobId: '7' }])).toEqual([undefined]);
  }
  expect(logged).toEqual([
    expect.stringMatching(
      /^CPU and memory of servers are not known: The program .*sstat is not there/,
    ),
  ]);
});

test.for([
  [
    'jobacct_gather/none',
    'Slurm measures none: set JobAcctGatherType=jobacct_gather/cgroup in slurm.conf',
  ],
  ['jobacct_gather/linux', undefined],
] as const)('steps without figures on a cluster with %s', async ([type, refusal]) => {
  // As sstat 22.05 answers without measuring, and for a step that has just begun.
  const directory = programFolder({
    sstat: "echo '7.batch|213503982334-14:25:51|'",
    scontrol: `echo 'JobAcctGatherType       = ${type}'`,
  });
  const commands = createSlurmCommands({ directory, sudo: undefined, environment: {} });
  expect(await commands.measureJobs(['7'])).toEqual({ figures: [], refusal });
});

describe.skipIf(!hasSlurm() || !requires('perl', 'setpriv'))('what jobs use', () => {
  const cluster = useSlurm();
  const commandsOf = (directory?: string) =>
    createSlurmCommands({
      directory,
      sudo: undefined,
      environment: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', SLURM_CONF: cluster().configuration },
    });

  async function submit(line: string): Promise<{ readonly jobId: string }> {
    const args = ['--output=/dev/null', '--chdir=/'];
    const options = { account: undefined, signal: AbortSignal.timeout(30_000) };
    const jobId = await commandsOf().submit(`#!/bin/bash\n${line}\n`, args, options);
    return { jobId };
  }

  test('is what sstat says, asked once for all of them', async () => {
    const burning = await submit('while :; do :; done');
    const holding = await submit(`exec ${pathOf('perl')} -e '$held = "x" x 60_000_000; sleep 600'`);
    const { usage, clock, asked } = openUsage(commandsOf().measureJobs);
    let rounds = 0;
    let used: readonly (ResourceUsage | undefined)[] = [];
    await until(async () => {
      clock.ms += 10_000;
      rounds += 1;
      used = await usage([burning, { jobId: '999999' }, holding]);
      return (used[0]?.cpuCores ?? 0) > 0.01 && (used[2]?.memoryBytes ?? 0) > 60e6;
    }, 'the one uses a processor and the other memory');
    expect(used[1]).toBeUndefined();
    expect(used[0]?.memoryBytes).toBeLessThan(60e6);
    expect(used[2]?.memoryBytes).toBeLessThan(600e6);
    // A moment in which Slurm fails would cost rounds.
    expect(asked.length).toBeLessThanOrEqual(rounds);
    expect(asked.every((ids) => ids.length === 3)).toBe(true);
    expect(await cluster().run('scontrol', 'show', 'config')).toMatch(
      /^JobAcctGatherType\s*= jobacct_gather\/linux$/m,
    );
  });

  test('is not shown to the account of a hub that does not own them, which is said once', async () => {
    const job = await submit('exec sleep 600');
    const own = openUsage(commandsOf().measureJobs);
    await until(async () => {
      own.clock.ms += 10_000;
      return (await own.usage([job]))[0] !== undefined;
    }, 'the job is measured');
    const asNobody = `exec ${pathOf('setpriv')} --reuid=nobody --regid=nogroup --clear-groups /usr/bin/sstat "$@"`;
    const hub = openUsage(commandsOf(programFolder({ sstat: asNobody })).measureJobs);
    for (let round = 0; round < 10; round += 1) {
      expect(await hub.usage([job])).toEqual([undefined]);
      hub.clock.ms += 10_000;
    }
    expect(hub.asked).toHaveLength(1);
    hub.clock.ms += 300_000;
    expect(await hub.usage([job])).toEqual([undefined]);
    expect(hub.asked).toHaveLength(2);
    expect(hub.logged).toEqual([
      'CPU and memory of servers are not known: Slurm shows those of a job to root, the SlurmUser and ' +
        'the account of the job alone',
    ]);
  });
});
