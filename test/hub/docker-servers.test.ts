import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { busyImage, hasDocker, importImage, useDocker } from '../support/docker-engine.ts';
import { createHubFolder } from '../support/hub-process.ts';
import { pathOf } from '../support/requires.ts';
import {
  adminToken,
  createServerHub,
  createUsers,
  readEvents,
  type ServerModel,
  serverPath,
  startUntilReady,
  stopServer,
  untilServer,
} from '../support/server-hub.ts';
import { projectDirectory } from '../support/services.ts';
import { until } from '../support/test-hub.ts';

const nodeImage = 'node:test';
const serve = `
at=$(echo $HUB_SERVICE_URL | tail -c +8)
trap exit TERM
httpd -f -p $at & wait`;
const smallServers = { class: 'docker', cmd: ['sh', '-c', serve], access: 'gateway' };

describe.runIf(hasDocker())('servers in containers', () => {
  const { docker, host } = useDocker();
  const containers = async () => docker.listContainers({ filters: { label: ['hub.id'] } });

  beforeAll(() => importNode(docker), 120_000);

  test('are workspaces behind the login, whose files outlive the container', async () => {
    await using hub = await createServerHub({
      Spawner: {
        class: 'docker',
        cmd: [
          ...['node', '/opt/hub/src/singleuser-main.ts', '--'],
          ...['node', '/opt/hub/examples/workspace/workspace.ts'],
        ],
        access: 'server',
        // From its sources, on a machine that may be slow.
        http_timeout: 300,
        volumes: [
          { source: projectDirectory, target: '/opt/hub', read_only: true },
          { source: 'home-{username}', target: '/home/user' },
        ],
      },
      DockerSpawner: { host, image: nodeImage, network: 'host', working_dir: '/home/user' },
    });
    const browser = await hub.logIn('alice');
    const path = serverPath('alice');
    await startUntilReady(hub, path);
    const [container] = await containers();
    expect(container?.Labels).toMatchObject({ 'hub.user': 'alice', 'hub.server-name': '' });
    expect(container?.Mounts.map(({ Destination }) => Destination).toSorted()).toEqual([
      '/home/user',
      '/opt/hub',
    ]);

    const page = `${hub.url}user/alice/`;
    const answer = await browser.open(page);
    expect(answer.status).toBe(200);
    expect(answer.body).toContain('alice');
    const inside = docker.getContainer(container?.Id ?? '');
    const made = await inside.exec({ Cmd: ['touch', '/home/user/kept.txt'] });
    await made.start({});
    await until(
      async () => (await browser.open(page)).body.includes('kept.txt'),
      'the file is shown',
    );

    await stopServer(hub, path);
    await untilServer(hub, path, ({ stopped }) => stopped, 'the server is stopped');
    expect(await containers()).toEqual([]);
    await startUntilReady(hub, path);
    expect((await browser.open(page)).body).toContain('kept.txt');
    await stopServer(hub, path);
    await untilServer(hub, path, ({ stopped }) => stopped, 'the server is stopped again');
  });

  test('tell on the page why they ended', async () => {
    const command = ['sh', '-c', 'echo this is why; tail /dev/zero'];
    await using hub = await createServerHub({
      Spawner: { class: 'docker', cmd: command, access: 'gateway', mem_limit: '24M' },
      DockerSpawner: { host, image: busyImage, network: 'host' },
    });
    await createUsers(hub, 'bob');
    const path = serverPath('bob');
    await hub.api(path, adminToken, { method: 'POST' });
    const { failure } = await untilServer(
      hub,
      path,
      (server) => server.failure !== null,
      'it fails',
    );
    expect(failure?.message).toContain('out of memory at 24 MiB');
    expect(failure?.output).toEqual(['this is why']);
    expect(await containers()).toEqual([]);
  });

  test('start twenty at once, and a killed hub loses none and starts none twice', async () => {
    const names = Array.from({ length: 20 }, (_, index) => `user-${index}`);
    await using folder = await createHubFolder({
      Hub: { concurrent_spawn_limit: 0, cleanup_servers: false },
      Spawner: { ...smallServers, poll_interval: 1, start_timeout: 300, http_timeout: 300 },
      DockerSpawner: { host, image: busyImage, network: 'host' },
    });
    const api = (path: string, init: RequestInit = {}) =>
      fetch(folder.apiUrl + path, {
        ...init,
        headers: { authorization: `token ${adminToken}`, 'content-type': 'application/json' },
      });
    const model = async (name: string) =>
      (await (await api(serverPath(name))).json()) as ServerModel;
    const startAll = () =>
      Promise.allSettled(names.map((name) => api(serverPath(name), { method: 'POST' })));
    const settled = async () => {
      let models: ServerModel[] = [];
      await until(async () => {
        models = await Promise.all(names.map(model));
        return models.every(({ ready, stopped }) => ready || stopped);
      }, 'each server is ready or stopped');
      return models;
    };
    const idsOf = async () => (await containers()).map(({ Labels }) => Labels['hub.server-id']);

    const first = await folder.start();
    await api('/users', { method: 'POST', body: JSON.stringify({ usernames: names }) });
    const asked = startAll();
    await until(async () => (await containers()).length >= 5, 'some of the containers run');
    first.signal('SIGKILL');
    await first.exited;
    await asked;

    await folder.start();
    const after = await settled();
    const ready = after.filter((server) => server.ready);
    expect(ready.length).toBeGreaterThan(0);
    await until(async () => (await containers()).length === ready.length, 'only they are left');
    expect(new Set(await idsOf()).size).toBe(ready.length);
    for (const { ready: isReady, failure } of after) {
      if (!isReady && failure !== null) expect(failure.message).toMatch(/^The hub stopped while/);
    }

    await startAll();
    expect((await settled()).filter((server) => server.ready)).toHaveLength(names.length);
    expect(new Set(await idsOf()).size).toBe(names.length);
    expect(await idsOf()).toHaveLength(names.length);

    await Promise.all(names.map((name) => api(serverPath(name), { method: 'DELETE' })));
    await until(async () => (await containers()).length === 0, 'all containers are gone');
  });

  test('show each step of a start while it happens', async () => {
    await using hub = await createServerHub({
      Spawner: smallServers,
      DockerSpawner: { host, image: busyImage, network: 'host' },
    });
    await createUsers(hub, 'carol');
    const path = serverPath('carol');
    const started = hub.api(path, adminToken, { method: 'POST' });
    await until(
      async () => (await hub.api(path, adminToken)).status === 200,
      'the server is known',
    );
    const events = await readEvents(await hub.api(`${path}/progress`, adminToken));
    await started;
    const messages = events.map(({ message }) => message);
    expect(messages).toContain('The server is ready.');
  });
});

/** An image with this Node.js and the libraries that it needs. */
async function importNode(docker: Parameters<typeof importImage>[0]): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'hub-node-image-'));
  const root = join(directory, 'root');
  for (const folder of ['bin', 'tmp', 'home/user'])
    mkdirSync(join(root, folder), { recursive: true });
  execFileSync('chmod', ['1777', join(root, 'tmp'), join(root, 'home/user')]);
  copyFileSync(pathOf('busybox'), join(root, 'bin/busybox'));
  for (const applet of ['sh', 'touch', 'ls']) symlinkSync('busybox', join(root, 'bin', applet));
  copyFileSync(process.execPath, join(root, 'bin/node'));
  const listed = execFileSync('ldd', [process.execPath], { encoding: 'utf8' });
  for (const [library] of listed.matchAll(/\/\S+/g)) {
    mkdirSync(join(root, dirname(library)), { recursive: true });
    copyFileSync(library, join(root, library));
  }
  await importImage(docker, root, nodeImage, ['USER 1000:1000', 'ENV PATH=/bin HOME=/home/user']);
  rmSync(directory, { recursive: true });
}
