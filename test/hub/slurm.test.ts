import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { freePort } from '../support/free-port.ts';
import {
  adminToken,
  createServerHub,
  createUsers,
  getServer,
  readEvents,
  serverPath,
  startServer,
  stopServer,
  untilServer,
} from '../support/server-hub.ts';
import { hasSlurm, type SlurmCluster, useSlurm } from '../support/slurm.ts';
import { type TestHub, until } from '../support/test-hub.ts';

const program = join(import.meta.dirname, '../../fixtures/apps/trivial.pl');
const path = serverPath('ada');

describe.skipIf(!hasSlurm())('servers as jobs of Slurm', () => {
  const cluster = useSlurm();

  async function createSlurmHub(
    options: Readonly<Record<string, unknown>> = {},
    Spawner: Readonly<Record<string, unknown>> = {},
    { outlivesHub = false } = {},
  ): Promise<TestHub> {
    const port = await freePort();
    const hub = await createServerHub({
      // The address is of this machine, but not one that every machine takes for its own.
      Hub: {
        hub_bind_url: `http://127.0.0.1:${port}`,
        hub_connect_url: `http://hub.localhost:${port}`,
        allow_named_servers: true,
        cleanup_servers: !outlivesHub,
      },
      Spawner: {
        class: 'slurm',
        cmd: ['perl', program],
        poll_interval: 1,
        start_timeout: 60,
        slow_start_timeout: 0,
        ...Spawner,
      },
      SlurmSpawner: { slurm_conf: cluster().configuration, poll_interval: 0.5, ...options },
    });
    await createUsers(hub, 'ada');
    return hub;
  }

  const isReady = ({ ready }: { readonly ready: boolean }) => ready;
  const jobOf = async (hub: TestHub) => (await getServer(hub, path)).state?.['jobId'] as string;
  const jobs = async (...args: string[]) =>
    (await cluster().run('squeue', '--noheader', '--format=%i %j %T', ...args)).trim();

  test('a server runs as a job, is served, and its job ends with it', async () => {
    await using hub = await createSlurmHub();
    expect((await startServer(hub, path)).status).toBeLessThan(300);
    await untilServer(hub, path, isReady, 'the server is ready');
    const jobId = await jobOf(hub);
    expect(await jobs()).toBe(`${jobId} hub-ada RUNNING`);

    const browser = await hub.logIn('ada');
    const page = await browser.open(`${hub.url}user/ada/`);
    expect(page).toMatchObject({ status: 200, body: 'ok\n' });

    await stopServer(hub, path);
    await untilServer(hub, path, ({ stopped }) => stopped, 'the server is stopped');
    expect(await jobs()).toBe('');
  });

  test('a job that waits says why and for how long, and no start ends for it', async () => {
    // Until the page has said that it runs, the job does not come to tell its address.
    const goes = join(await mkdtemp(join(tmpdir(), 'hub-slurm-job-')), 'goes');
    const prologue = `until [ -e ${goes} ]; do sleep 0.1; done`;
    await using hub = await createSlurmHub({ partition: 'closed', prologue }, { start_timeout: 8 });
    await startServer(hub, path);
    const progress = await hub.api(`${path}/progress`, adminToken);
    const events = readEvents(progress);
    await until(async () => (await jobs()).endsWith('PENDING'), 'the job waits');
    // Longer than the timeout of the start, by the clock that the timeout goes by.
    const waitsSince = performance.now();
    await until(() => performance.now() - waitsSince > 9_000, 'the timeout is over');
    expect(await getServer(hub, path)).toMatchObject({ pending: 'spawn', failure: null });

    await cluster().run('scontrol', 'update', 'PartitionName=closed', 'State=UP');
    try {
      const browser = await hub.logIn('ada');
      const page = `${hub.url}hub/spawn-pending/ada`;
      await until(async () => (await browser.open(page)).body.includes('runs on'), 'it runs');
      await writeFile(goes, '');
      await untilServer(hub, path, isReady, 'the server is ready');
    } finally {
      await rm(dirname(goes), { recursive: true });
      await cluster().run('scontrol', 'update', 'PartitionName=closed', 'State=DOWN');
    }
    const messages = (await events).map(({ message }) => message);
    expect(messages).toContainEqual(
      expect.stringMatching(/^Waiting in the queue of the partition closed.*\(PartitionDown\)/),
    );
    expect(messages).toContainEqual(expect.stringMatching(/^The job \d+ runs on /));
  });

  test('a hub that starts again finds the job that runs', async () => {
    await using first = await createSlurmHub({}, {}, { outlivesHub: true });
    await startServer(first, path);
    await untilServer(first, path, isReady, 'the server is ready');
    const jobId = await jobOf(first);
    await using second = await first.restart();
    expect(await getServer(second, path)).toMatchObject({ ready: true });
    expect(await jobOf(second)).toBe(jobId);
    await stopServer(second, path);
    await untilServer(second, path, ({ stopped }) => stopped, 'the server is stopped');
    expect(await jobs()).toBe('');
  });

  test('a start that is cancelled cancels its job', async () => {
    await using hub = await createSlurmHub({ partition: 'closed' });
    await startServer(hub, path);
    await until(async () => (await jobs()).endsWith('PENDING'), 'the job waits');
    await stopServer(hub, path);
    await untilServer(hub, path, ({ stopped }) => stopped, 'the server is stopped');
    expect(await jobs()).toBe('');
  });

  test('a job that others end is told to its user with the reason', async () => {
    await using hub = await createSlurmHub();
    await startServer(hub, path);
    await untilServer(hub, path, isReady, 'the server is ready');
    await cluster().run('scancel', await jobOf(hub));
    const ended = await untilServer(hub, path, ({ stopped }) => stopped, 'the end is noticed');
    expect(ended.failure?.message).toMatch(/the job was cancelled in Slurm/);
  });

  test('a job that Slurm ends for its time limit is told to its user with the limit', async () => {
    await using hub = await createSlurmHub({ time_limit: 1 });
    await startServer(hub, path);
    await untilServer(hub, path, isReady, 'the server is ready');
    const jobId = await jobOf(hub);
    // The minute is over now, which the controller sees within 30 seconds. It takes no end in the second of the start.
    await until(
      () =>
        cluster()
          .run('scontrol', 'update', `JobId=${jobId}`, 'EndTime=now')
          .then(() => true)
          .catch((error: Error) => {
            if (!/Invalid time specified/.test(error.message)) throw error;
            return false;
          }),
      'the end of the job is now',
    );
    const ended = await untilServer(hub, path, ({ stopped }) => stopped, 'the end is noticed');
    expect(ended.failure?.message).toBe(
      'The server ended: the job reached its time limit of 1 minute.',
    );
    const reported = await cluster().run(
      'squeue',
      '--noheader',
      '--states=all',
      '--format=%T',
      '-j',
      jobId,
    );
    expect(reported.trim()).toBe('TIMEOUT');
  });

  test('a program that fails is explained by its own last lines', async () => {
    const cmd = ['sh', '-c', 'echo "no licence on $(hostname)" >&2; exit 4'];
    await using hub = await createSlurmHub({}, { cmd });
    await startServer(hub, path);
    const failed = await untilServer(
      hub,
      path,
      ({ failure }) => failure !== null,
      'the start has failed',
    );
    expect(failed.failure?.output.join('\n')).toMatch(/no licence on/);
    expect(await jobs()).toBe('');
  });

  test('what Slurm refuses is told in its words', async () => {
    await using hub = await createSlurmHub({ partition: 'nowhere' });
    await startServer(hub, path);
    const failed = await untilServer(
      hub,
      path,
      ({ failure }) => failure !== null,
      'the start has failed',
    );
    expect(failed.failure?.message).toMatch(
      /^Slurm refuses the job: .*invalid partition|Invalid partition name/i,
    );
  });

  test('a controller that is away says nothing of the servers', async () => {
    await using hub = await createSlurmHub();
    await startServer(hub, path);
    await untilServer(hub, path, isReady, 'the server is ready');
    await withoutController(cluster(), async () => {
      await startServer(hub, serverPath('ada', 'second')).then((answer) => answer.text());
      const second = await untilServer(
        hub,
        serverPath('ada', 'second'),
        ({ failure }) => failure !== null,
        'the start of another server has failed',
      );
      expect(second.failure?.message).toMatch(/^Slurm gives no answer: /);
      expect(await getServer(hub, path)).toMatchObject({ ready: true, failure: null });
    });
    expect(await getServer(hub, path)).toMatchObject({ ready: true });
    await stopServer(hub, path);
    await untilServer(hub, path, ({ stopped }) => stopped, 'the server is stopped');
  });

  test('users choose from what is on offer, and from nothing else', async () => {
    await using hub = await createSlurmHub({
      choosable_partitions: ['short'],
      longest_time_limit: 30,
    });
    const refused = await startServer(hub, path, { partition: 'closed' });
    expect(await refused.text()).toMatch(/Partition: this is none of the choices/);
    expect(await jobs()).toBe('');
    await startServer(hub, path, { partition: 'short', time_limit: 7 });
    await untilServer(hub, path, isReady, 'the server is ready');
    const limit = await cluster().run('squeue', '--noheader', '--format=%l %P');
    expect(limit.trim()).toBe('7:00 short');
  });

  test("a job runs under its user's account, and no other account reads its token", async () => {
    await using hub = await createSlurmHub(
      {},
      {
        system_user: 'nobody',
        allowed_system_users: ['nobody'],
        home_dir: '/tmp/hub-{username}',
      },
    );
    await startServer(hub, path);
    await untilServer(hub, path, isReady, 'the server is ready');
    const jobId = await jobOf(hub);
    expect((await cluster().run('squeue', '--noheader', '--format=%u')).trim()).toBe('nobody');
    const details = await cluster().run('scontrol', '-dd', 'show', 'job', jobId);
    expect(details).not.toMatch(/hub_[\w-]{20}/);
    expect(JSON.stringify(hub.logLines)).not.toMatch(/HUB_API_TOKEN=/);
  });
});

async function withoutController(cluster: SlurmCluster, work: () => Promise<void>): Promise<void> {
  await cluster.stopController();
  try {
    await work();
  } finally {
    await cluster.startController();
  }
}
