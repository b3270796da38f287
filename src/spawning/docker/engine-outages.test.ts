import { describe, expect, test } from 'vitest';
import { hasDocker } from '../../../test/support/docker-engine.ts';
import { useDockerSpawners } from '../../../test/support/docker-spawners.ts';
import { until } from '../../../test/support/test-hub.ts';

describe.runIf(hasDocker())('a server in a container', () => {
  const { engine, create, request, signal } = useDockerSpawners();
  const { host } = engine;

  test('while the engine hangs is not known to be gone, and nothing else hangs', async () => {
    const { spawner: patient } = await create();
    const { state } = await patient.start(request());
    const { state: stopped } = await patient.start(
      request({ serverId: 'server-3', serverName: 'lab', objectName: 'ann--lab' }),
    );
    const { spawner } = await create({ api_timeout: 0.5 });
    await engine.freeze();
    try {
      const reason = expect.stringMatching(/does not answer: it took too long$/);
      expect(await spawner.poll(state)).toEqual({ running: 'unknown', reason });
      await expect(spawner.restore(state, { onOutput: () => undefined })).rejects.toThrow(
        /does not answer/,
      );
      // The engine may do it all the same once it goes on.
      await expect(spawner.stop(stopped, { graceMs: 0, signal: signal() })).rejects.toThrow(
        /does not answer/,
      );
      await expect(spawner.start(request({ serverId: 'server-2' }))).rejects.toThrow(
        /does not answer/,
      );
    } finally {
      engine.thaw();
    }
    await until(async () => (await patient.poll(state)).running === true, 'it runs as before');
    for (const each of [state, stopped]) {
      await patient.stop(each, { graceMs: 0, signal: signal() });
    }
  });

  test('is unknown while the engine is down, and ended once it is up again', async () => {
    const { spawner } = await create();
    const lines: string[] = [];
    const server = await spawner.start(request({ onOutput: (line) => lines.push(line) }));
    // Before that it would not hear the signal of the engine.
    await until(() => lines.includes('ready'), 'it listens to signals');
    await engine.stop();
    try {
      expect(await spawner.poll(server.state)).toEqual({
        running: 'unknown',
        reason: `The container engine at ${host} does not answer: its socket is not there; is it running?`,
      });
      await expect(spawner.start(request({ serverId: 'server-2' }))).rejects.toThrow(
        /is it running\?/,
      );
    } finally {
      await engine.start();
    }
    // The engine took its containers with it.
    expect(await server.exited).toMatchObject({ signal: 'SIGTERM' });
    expect(await spawner.poll(server.state)).toMatchObject({ running: false });
    await spawner.stop(server.state, { graceMs: 0, signal: signal() });
  });
});
