import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { freePort } from '../support/free-port.ts';
import { createHubFolder, type HubFolder } from '../support/hub-process.ts';
import { readEvents, type ServerModel } from '../support/server-hub.ts';
import { hasSlurm, useSlurm } from '../support/slurm.ts';
import { until } from '../support/test-hub.ts';

const program = join(import.meta.dirname, '../../fixtures/apps/trivial.pl');
const headers = { authorization: 'token admin-service-token', 'content-type': 'application/json' };

describe.skipIf(!hasSlurm())('jobs of Slurm while the hub is restarted', () => {
  const cluster = useSlurm();

  async function createSlurmFolder(options: object = {}): Promise<HubFolder & { api: string }> {
    const origin = `http://127.0.0.1:${await freePort()}`;
    const folder = await createHubFolder({
      Hub: {
        hub_bind_url: origin,
        hub_connect_url: origin.replace('127.0.0.1', 'hub.localhost'),
      },
      Spawner: {
        class: 'slurm',
        cmd: ['perl', program],
        access: 'gateway',
        poll_interval: 1,
        start_timeout: 300,
        http_timeout: 300,
        slow_start_timeout: 0,
      },
      SlurmSpawner: { slurm_conf: cluster().configuration, poll_interval: 0.5, ...options },
    });
    return { ...folder, api: `${origin}/hub/api` };
  }

  const ask = (folder: { api: string }, path: string, method = 'GET') =>
    fetch(folder.api + path, { method, headers });
  const server = async (folder: { api: string }) =>
    (await (await ask(folder, '/users/ada/server')).json()) as ServerModel;
  const jobs = async () =>
    (await cluster().run('squeue', '--noheader', '--format=%i %T')).trim().split('\n');
  const partition = (state: 'UP' | 'DOWN') =>
    cluster().run('scontrol', 'update', 'PartitionName=closed', `State=${state}`);

  async function stop(folder: { api: string }): Promise<void> {
    await ask(folder, '/users/ada/server', 'DELETE');
    await until(async () => (await server(folder)).stopped, 'the server is stopped');
    expect(await jobs()).toEqual(['']);
  }

  test.for(['SIGTERM', 'SIGKILL'] as const)(
    'one that waits in the queue is gone on with after a %s, and leads to its server',
    async (signal) => {
      await using folder = await createSlurmFolder({ partition: 'closed' });
      const first = await folder.start();
      await ask(folder, '/users/ada', 'POST');
      await ask(folder, '/users/ada/server', 'POST');
      await until(async () => (await jobs()).join().endsWith('PENDING'), 'the job waits');
      await until(async () => {
        const events = (await ask(folder, '/users/ada/server')).json() as Promise<ServerModel>;
        return (await events).state?.['jobId'] !== undefined;
      }, 'the hub has kept the job');
      const waiting = await jobs();
      first.signal(signal);
      await first.exited;
      expect(await jobs()).toEqual(waiting);

      await using _second = await folder.start();
      expect(await server(folder)).toMatchObject({ pending: 'spawn', failure: null });
      const events = ask(folder, '/users/ada/server/progress').then(readEvents);
      await partition('UP');
      try {
        await until(async () => (await server(folder)).ready, 'the server is ready');
      } finally {
        await partition('DOWN');
      }
      expect(await jobs()).toEqual([waiting[0]?.replace('PENDING', 'RUNNING')]);
      expect((await events).at(-1)).toMatchObject({ ready: true });
      await stop(folder);
    },
  );
});
