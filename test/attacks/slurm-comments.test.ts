import { execFileSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import type { Spawner } from '../../src/plugin/host/spawner.ts';
import { slurmPlugin } from '../../src/spawning/slurm/slurm-plugin.ts';
import { createSpawnRequest } from '../contract/spawn-request.ts';
import { pathOf } from '../support/requires.ts';
import { hasSlurm, useSlurm } from '../support/slurm.ts';
import { until } from '../support/test-hub.ts';
import { createTestSpawner, testHubId } from '../support/test-spawner.ts';

/** An account of every Debian that submits jobs of its own, beside those of the hub. */
const attacker = 'nobody';
const separator = '\u001f';
const script = '#!/bin/sh\nsleep 600\n';

/** As everyone on the cluster can read it, for example `hub:<hub>:server-7`. */
const commentOf = (serverId: string) => `hub:${testHubId}:${serverId}`;

describe.runIf(hasSlurm())('an account with a shell on the cluster', () => {
  const cluster = useSlurm();

  function submitAs(account: string, ...args: string[]): string {
    const env = { PATH: '/usr/bin:/bin', SLURM_CONF: cluster().configuration };
    const words = ['-u', account, '--', 'sbatch', '--parsable', '--chdir=/', '--output=/dev/null'];
    return execFileSync(pathOf('runuser'), [...words, ...args], {
      env,
      cwd: '/',
      input: script,
      encoding: 'utf8',
    }).trim();
  }

  const ids = async () =>
    (await cluster().run('squeue', '--noheader', '--format=%i')).trim().split('\n');

  async function createSpawner(active: readonly string[]): Promise<Spawner> {
    const options = { slurm_conf: cluster().configuration, poll_interval: 0.2 };
    const { spawner } = await createTestSpawner(slurmPlugin, options, {
      activeServers: async () => new Set(active),
    });
    return spawner;
  }

  test('cannot have the hub cancel a job of another account', async () => {
    const victim = submitAs('root');
    const server = 'server-of-no-one';
    const forgedLine = (id: string) => [id, 'root', commentOf(server)].join(separator);
    const own = submitAs(
      attacker,
      '--hold',
      // Each looks like a job of the hub; the last one like all jobs of an account.
      `--comment=${['x', forgedLine(victim), forgedLine('--user=root')].join('\n')}`,
    );
    const marked = submitAs('root', `--comment=${commentOf(server)}`);
    const spawner = await createSpawner([]);
    try {
      await spawner.discard?.(server, { graceMs: 0, isOurs: () => true });
      await until(
        async () => !(await ids()).includes(marked),
        'the job that is left over has ended',
      );
      expect(await ids()).toEqual(expect.arrayContaining([victim, own]));
    } finally {
      await spawner[Symbol.asyncDispose]?.();
      for (const id of [victim, own]) await cluster().run('scancel', id);
    }
  });

  test('cannot keep the server of another from starting by jobs that look like its own', async () => {
    const request = createSpawnRequest({ serverId: 'server-of-ann', command: ['sleep', '600'] });
    const planted = submitAs(attacker, '--hold', `--comment=${commentOf(request.serverId)}`);
    const spawner = await createSpawner([request.serverId]);
    const stopping = new AbortController();
    const starting = spawner
      .start({ ...request, signal: stopping.signal, awaitAddress: () => new Promise(() => {}) })
      .catch(() => undefined);
    try {
      await until(async () => (await ids()).length === 2, 'the job of the server is submitted');
      expect(await ids()).toContain(planted);
    } finally {
      stopping.abort();
      await starting;
      await spawner[Symbol.asyncDispose]?.();
      await cluster().run('scancel', planted);
    }
  });
});
