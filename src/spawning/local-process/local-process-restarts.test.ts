import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { execPath, kill } from 'node:process';
import { createInterface } from 'node:readline';
import { describe, expect, test } from 'vitest';
import { isReady, pidOf, useLocalSpawners } from '../../../test/support/local-spawners.ts';
import { fixtureApp } from '../../../test/support/server-hub.ts';
import { testHubId } from '../../../test/support/test-hub-id.ts';
import {
  identifyProcess,
  isSameProcess,
  type ProcessIdentity,
} from '../../platform/process-table/process-table.ts';
import { noCgroups } from '../processes/cgroup.ts';
import { newTag } from '../processes/process-tag.ts';
import { directView, type ProcessView } from '../processes/process-view.ts';
import { tagFamilyOf } from './server-state.ts';

const { directory, lines, createSpawner, start, stop, seen } = useLocalSpawners();

describe('after a restart of the hub', () => {
  test('a server is found again, heard, measured and stopped by the next one', async () => {
    const former = createSpawner();
    const server = await start(former, { command: fixtureApp('counts') });
    await seen('counting');
    await former[Symbol.asyncDispose]?.();
    expect(await former.poll(server.state)).toEqual({ running: true });

    const next = createSpawner();
    const state = JSON.parse(JSON.stringify(server.state));
    const found = await next.restore(state, { onOutput: (line) => lines.push(`again: ${line}`) });
    expect(found).toMatchObject({ url: server.url, state });
    kill(pidOf(server), 'SIGUSR1');
    await seen('again: count 1');
    expect(await next.poll(state)).toEqual({ running: true });
    await next.stop(state, { graceMs: 5_000, signal: AbortSignal.timeout(30_000) });
    expect(await found?.exited).toEqual({ code: null, signal: null });
    expect(await next.poll(state)).toEqual({ running: false });
  });

  test('a server on a socket that has ended meanwhile leaves no socket behind', async () => {
    const former = createSpawner();
    const server = await start(former, { socket: true });
    await isReady(server);
    await former[Symbol.asyncDispose]?.();
    kill(pidOf(server), 'SIGKILL');
    const next = createSpawner();
    await expect
      .poll(() => next.restore(server.state, { onOutput: () => undefined }))
      .toBeUndefined();
    await stop(next, server);
    const path = decodeURIComponent(server.url.replace('http+unix://', ''));
    await expect(stat(path)).rejects.toThrow('ENOENT');
  });

  test('another program with the pid of a server is neither found nor stopped', async () => {
    const innocent = spawn(execPath, ['-e', 'setInterval(() => {}, 60000)'], { detached: true });
    try {
      const identity = identifyProcess(innocent.pid ?? 0);
      if (identity === undefined) throw new Error('the other program has not started');
      const state = {
        serverId: 'server-1',
        pid: identity.pid,
        startTime: 'another boot/7',
        url: 'http://127.0.0.1:9',
        logFile: join(directory(), 'logs', 'server-1.log'),
      };
      const spawner = createSpawner();
      expect(await spawner.restore(state, { onOutput: () => undefined })).toBeUndefined();
      expect(await spawner.poll(state)).toEqual({ running: false });
      await spawner.stop(state, { graceMs: 100, signal: AbortSignal.timeout(30_000) });
      expect(isSameProcess(identity)).toBe(true);
    } finally {
      innocent.kill('SIGKILL');
    }
  });

  test('a state that is not one is no server', async () => {
    const spawner = createSpawner();
    expect(await spawner.restore({}, { onOutput: () => undefined })).toBeUndefined();
    expect(await spawner.poll({ pid: 1 })).toEqual({ running: false });
    await spawner.stop({ pid: -1 }, { graceMs: 0, signal: AbortSignal.timeout(30_000) });
    expect(await spawner.usage?.([{}])).toEqual([undefined]);
  });
});

describe('what a hub left that was killed in a start', () => {
  /** Starts a program of the server, as a hub does that is then killed. */
  async function leaveBehind(hubId = testHubId): Promise<ProcessIdentity> {
    const logFile = join(directory(), 'elsewhere', 'server.log');
    const [program = '', ...rest] = fixtureApp(
      'supervises',
      logFile,
      ...fixtureApp('never-listens'),
    );
    const tag = newTag(tagFamilyOf(hubId, 'server-1'));
    const hub = spawn(program, rest, {
      env: { ...process.env, TAG: tag },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [line] = await once(createInterface(hub.stdout), 'line');
    hub.kill('SIGKILL');
    const orphan = JSON.parse(String(line)) as ProcessIdentity;
    expect(isSameProcess(orphan)).toBe(true);
    return orphan;
  }

  test('is ended by the next start, also of a hub that started the server before', async () => {
    const spawner = createSpawner();
    await stop(spawner, await start(spawner));
    const orphan = await leaveBehind();
    const server = await start(spawner);
    expect(isSameProcess(orphan)).toBe(false);
    expect(await isReady(server)).toMatchObject({ ready: true });
  });

  test('is ended by the hub that takes its servers over, also when a look comes at the wrong moment', async () => {
    const orphan = await leaveBehind();
    let looks = 0;
    const view: ProcessView = {
      ...directView,
      async tagsOf(family) {
        looks += 1;
        return looks === 1 ? [] : directView.tagsOf(family);
      },
    };
    const spawner = createSpawner(200, { view, cgroups: noCgroups });
    await spawner.discard?.('server-1', { graceMs: 5_000, isOurs: () => true });
    expect(isSameProcess(orphan)).toBe(false);
  });

  test('is left alone by hubs of other databases, and by one that may have lost the server', async () => {
    const orphan = await leaveBehind();
    try {
      await start(createSpawner(200, { hubId: 'hub-2' }));
      const spawner = createSpawner();
      const isOurs = () => false;
      await spawner.discard?.('server-1', { graceMs: 0, isOurs });
      await expect(start(spawner, { isOurs })).rejects.toThrow('another instance of the hub');
      expect(isSameProcess(orphan)).toBe(true);
    } finally {
      kill(orphan.pid, 'SIGKILL');
    }
  });
});

test('a hub that learns late that another one has started its server again ends only its own', async () => {
  const former = await start(createSpawner());
  const heir = createSpawner();
  await stop(heir, former);
  const current = await start(heir);
  await stop(createSpawner(), former);
  expect(await heir.poll(current.state)).toEqual({ running: true });
  expect(await isReady(current)).toMatchObject({ ready: true });
});
