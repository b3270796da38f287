import { afterEach, describe, expect, test } from 'vitest';
import plugin from '../../../plugins/docker.ts';
import { createSpawnRequest } from '../../../test/contract/spawn-request.ts';
import { spawnerContract } from '../../../test/contract/testing.ts';
import { contractCommands as commands } from '../../../test/support/container-commands.ts';
import { busyImage } from '../../../test/support/docker-engine.ts';
import { hasPodman, usePodman } from '../../../test/support/podman-engine.ts';
import { until } from '../../../test/support/test-hub.ts';
import { createTestSpawner } from '../../../test/support/test-spawner.ts';
import type { SpawnRequest } from '../../plugin/host/spawn-request.ts';
import type { Spawner } from '../../plugin/host/spawner.ts';

describe.runIf(hasPodman())('Podman', () => {
  const podman = usePodman();
  const { docker } = podman;
  const options = { host: podman.host, image: busyImage, network: 'host' };
  const engine = { takeAway: () => podman.stop(), bringBack: () => podman.start() };
  const signal = () => AbortSignal.timeout(30_000);

  describe('keeps the contract', () => {
    test.for(spawnerContract({ plugin, options, commands, engine }))('$name', ({ run }) => run());
  });

  const spawners: Spawner[] = [];

  async function create(changed: object = {}): Promise<Spawner> {
    const { spawner } = await createTestSpawner(plugin, { ...options, ...changed });
    spawners.push(spawner);
    return spawner;
  }

  const request = (changed: Partial<SpawnRequest> = {}) =>
    createSpawnRequest({ command: ['sh', '-c', 'trap exit TERM; sleep 600 & wait'], ...changed });

  afterEach(async () => {
    for (const spawner of spawners.splice(0)) await spawner[Symbol.asyncDispose]?.();
    for (const { Id } of await docker.listContainers({ all: true })) {
      await docker.getContainer(Id).remove({ force: true, v: true });
    }
  });

  test('holds a server to its limits, and gives it no rights', async () => {
    const spawner = await create();
    const limits = { memoryBytes: 64 * 1024 ** 2, cpuCores: 0.5, processes: 20 };
    const { state } = await spawner.start(request({ limits }));
    const info = await docker.getContainer(String(state['container'])).inspect();
    expect(info.HostConfig).toMatchObject({
      Memory: 64 * 1024 ** 2,
      NanoCpus: 500_000_000,
      PidsLimit: 20,
      SecurityOpt: ['no-new-privileges'],
    });
    const lines: string[] = [];
    const asks = ['sh', '-c', 'while read line; do echo $line; done < /proc/self/status'];
    const onOutput = (line: string) => void lines.push(line);
    const { exited } = await spawner.start(
      request({ serverId: 'b', objectName: 'b', command: asks, onOutput }),
    );
    await exited;
    expect(lines).toEqual(
      expect.arrayContaining([
        'CapEff: 0000000000000000',
        'CapBnd: 0000000000000000',
        'NoNewPrivs: 1',
      ]),
    );
  });

  test('tells how a server ended that the next hub found again', async () => {
    const command = [
      'sh',
      '-c',
      'trap "sleep 0.5; echo bye; exit 5" TERM; echo hello; sleep 600 & wait',
    ];
    const first = await create();
    const lines: string[] = [];
    const { state } = await first.start(request({ command, onOutput: (line) => lines.push(line) }));
    await until(() => lines.includes('hello'), 'it says hello');
    await first[Symbol.asyncDispose]?.();
    const next = await create();
    const lastLines: string[] = [];
    const found = await next.restore(state, { onOutput: (line) => lastLines.push(line) });
    const stopping = docker.getContainer(String(state['container'])).stop({ t: 5 });
    expect(await found?.exited).toEqual({ code: 5, signal: null });
    expect(lastLines.at(-1)).toBe('bye');
    await stopping;
  });

  test('notices a container that is removed by hand', async () => {
    const spawner = await create();
    const { state, exited } = await spawner.start(request());
    await docker.getContainer(String(state['container'])).remove({ force: true });
    await exited;
    expect(await spawner.poll(state)).toMatchObject({ running: false });
  });

  test('has volumes with labels, that go with their user if that is configured', async () => {
    const spawner = await create({ delete_volumes: true });
    const volumes = [
      { source: 'home-ann', target: '/tmp', readOnly: false, owner: 'user' },
    ] as const;
    const command = ['sh', '-c', 'echo /tmp/*; touch /tmp/kept'];
    const lines: string[] = [];
    const onOutput = (line: string) => void lines.push(line);
    for (const _ of ['first', 'second']) {
      const { state, exited } = await spawner.start(request({ command, volumes, onOutput }));
      await exited;
      await spawner.stop(state, { graceMs: 0, signal: signal() });
    }
    expect(lines).toEqual(['/tmp/*', '/tmp/kept']);
    const names = async () => ((await docker.listVolumes()).Volumes ?? []).map(({ Name }) => Name);
    await spawner.delete?.(request(), { withUser: false, signal: signal() });
    expect(await names()).toEqual(['home-ann']);
    await spawner.delete?.(request(), { withUser: true, signal: signal() });
    expect(await names()).toEqual([]);
  });

  test('starts no server with GPUs, which it would leave out', async () => {
    const spawner = await create();
    await expect(spawner.start(request({ limits: { gpus: 1 } }))).rejects.toThrow(
      'Podman gives no GPUs over the API of Docker.',
    );
    expect(await docker.listContainers({ all: true })).toEqual([]);
  });

  test('is what hub doctor finds', async () => {
    const spawner = await create({ allowed_images: [busyImage, '127.0.0.1:1/none:1'] });
    const asked = { signal: signal(), profileOptions: new Map([[undefined, {}]]) };
    const found = await spawner.examine?.(asked);
    expect(found?.map(({ check, state, detail }) => `${check}: ${state} ${detail}`)).toEqual([
      expect.stringMatching(/^engine: ok Podman Engine \d+\S*, API 1\.\d+, answers at unix:/),
      expect.stringMatching(/^limits: /),
      `image ${busyImage}: ok is on the engine`,
      'image 127.0.0.1:1/none:1: skipped is pulled at the first start that needs it',
    ]);
  });
});
