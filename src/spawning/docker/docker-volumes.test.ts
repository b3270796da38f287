import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { hasDocker } from '../../../test/support/docker-engine.ts';
import { useDockerSpawners } from '../../../test/support/docker-spawners.ts';
import { testHubId } from '../../../test/support/test-spawner.ts';
import type { SpawnRequest } from '../../plugin/host/spawn-request.ts';

describe.runIf(hasDocker())('a server in a container', () => {
  const { engine, create, request, signal } = useDockerSpawners();
  const { docker } = engine;

  test('has volumes that outlive it, and folders that it can only read', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'hub-volume-'));
    await chmod(folder, 0o755);
    await mkdir(join(folder, 'given'));
    const volumes = [
      { source: 'home-ann', target: '/tmp', readOnly: false },
      { source: folder, target: '/data', readOnly: true },
    ];
    const lines: string[] = [];
    const { spawner } = await create();
    const command = ['sh', '-c', 'ls /data /tmp; touch /tmp/kept; touch /data/refused'];
    for (const _ of ['first', 'second']) {
      const server = await spawner.start(
        request({ command, volumes, onOutput: (line) => lines.push(line) }),
      );
      await server.exited;
      await spawner.stop(server.state, { graceMs: 0, signal: signal() });
    }
    expect(lines).toContain('given');
    expect(lines).toContain('kept');
    expect(lines.filter((line) => line.includes('Read-only file system'))).toHaveLength(2);
    const volume = await docker.getVolume('home-ann').inspect();
    expect(volume.Labels).toMatchObject({ 'hub.id': testHubId });
    await docker.getVolume('home-ann').remove();
    await rm(folder, { recursive: true });
  });

  test('has volumes that go with it or with its user, if that is configured, and no others do', async () => {
    const of = (accountName: string) =>
      request({
        serverId: `server-of-${accountName}`,
        objectName: accountName,
        accountName,
        command: ['sh', '-c', 'exit'],
        volumes: [
          { source: `home-${accountName}`, target: '/a', readOnly: false, owner: 'user' },
          { source: `lab-${accountName}`, target: '/b', readOnly: false, owner: 'server' },
          { source: 'data', target: '/c', readOnly: false },
          { source: 'made-by-hand', target: '/d', readOnly: false, owner: 'user' },
        ],
      });
    await docker.createVolume({ Name: 'made-by-hand' });
    const { spawner } = await create({ delete_volumes: true });
    for (const name of ['ann', 'ben']) {
      const { state, exited } = await spawner.start(of(name));
      await exited;
      await spawner.stop(state, { graceMs: 0, signal: signal() });
    }
    const names = async () =>
      (await docker.listVolumes()).Volumes.map(({ Name }) => Name).toSorted();
    const remove = (server: SpawnRequest, withUser: boolean, by = spawner) =>
      by.delete?.(server, { withUser, signal: signal() });
    const others = ['data', 'home-ben', 'lab-ben', 'made-by-hand'];

    const { spawner: keeps } = await create();
    await remove(of('ann'), true, keeps);
    // A user who never had a server, and whose name is the account of another one.
    const { accountName: _, ...foreignAuthority } = of('ann');
    await remove({ ...foreignAuthority, serverId: 'of-nobody' }, true);
    expect(await names()).toEqual([
      'data',
      'home-ann',
      'home-ben',
      'lab-ann',
      'lab-ben',
      'made-by-hand',
    ]);
    await remove(of('ann'), false);
    expect(await names()).toEqual(['data', 'home-ann', ...others.slice(1)]);
    await remove({ ...of('ann'), serverId: 'another' }, true);
    await remove(of('ann'), true);
    expect(await names()).toEqual(others);
    for (const name of others) await docker.getVolume(name).remove();
  });
});
