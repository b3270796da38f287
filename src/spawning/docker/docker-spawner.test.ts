import { createServer } from 'node:http';
import { describe, expect, test } from 'vitest';
import { busyImage, hasDocker } from '../../../test/support/docker-engine.ts';
import { sleeps, useDockerSpawners } from '../../../test/support/docker-spawners.ts';
import { until } from '../../../test/support/test-hub.ts';
import { testHubId } from '../../../test/support/test-spawner.ts';
import type { SpawnRequest } from '../../plugin/host/spawn-request.ts';
import { waitUntilReady } from '../processes/readiness-probe.ts';
import { createRequest } from './create-request.ts';
import type { DockerOptions } from './docker-options.ts';
import { dockerPlugin } from './docker-plugin.ts';

const serve = `
at=$(echo $HUB_SERVICE_URL | tail -c +8)
trap exit TERM
httpd -f -p $at & echo listening on $at
wait`;
const serves = ['sh', '-c', serve];

describe.runIf(hasDocker())('a server in a container', () => {
  const { engine, create, request, inspect, signal } = useDockerSpawners();
  const { docker } = engine;

  test('is held to its limits, has no rights beyond them and is labelled', async () => {
    const { spawner } = await create({ labels: { team: 'physics' }, working_dir: '/www' });
    const { state } = await spawner.start(
      request({
        environment: { HUB_API_TOKEN: 'secret', PATH: '/of/the/hub', GREETING: 'hello' },
        limits: { memoryBytes: 64 * 1024 ** 2, cpuCores: 0.5, processes: 20 },
        guarantees: { memoryBytes: 16 * 1024 ** 2 },
        serverName: 'lab',
      }),
    );
    const { Config, HostConfig, Name } = await inspect(state);
    expect(HostConfig).toMatchObject({
      Memory: 64 * 1024 ** 2,
      MemorySwap: 64 * 1024 ** 2,
      MemoryReservation: 16 * 1024 ** 2,
      NanoCpus: 500_000_000,
      PidsLimit: 20,
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges'],
      Privileged: false,
    });
    expect(Config.Labels).toEqual({
      team: 'physics',
      'hub.id': testHubId,
      'hub.server-id': 'server-1',
      'hub.user': 'ann',
      'hub.server-name': 'lab',
    });
    expect(Config.Env).toEqual(
      expect.arrayContaining(['GREETING=hello', 'PATH=/bin', 'FROM_IMAGE=yes']),
    );
    expect(Config.WorkingDir).toBe('/www');
    expect(Name).toBe('/hub-6f9619ff-ann');
  });

  test('says that it ran out of memory, and at how much', async () => {
    const { spawner } = await create();
    const eats = ['sh', '-c', 'echo begun; tail /dev/zero'];
    const server = await spawner.start(
      request({ command: eats, limits: { memoryBytes: 24 * 1024 ** 2 } }),
    );
    expect(await server.exited).toMatchObject({ reason: 'out of memory at 24 MiB' });
  });

  test('that ends at once tells its output before its end', async () => {
    const { spawner } = await create();
    const lines: string[] = [];
    const server = await spawner.start(
      request({
        command: ['sh', '-c', 'echo out; echo err >&2; exit 7'],
        onOutput: (line, stream) => lines.push(`${stream} ${line}`),
      }),
    );
    expect(await server.exited).toEqual({ code: 7, signal: null });
    expect(lines.toSorted()).toEqual(['stderr err', 'stdout out']);
  });

  test('rests and goes on, as often as it is asked for, and ends in its own way while it rests', async () => {
    const { spawner } = await create();
    const lines: string[] = [];
    const command = ['sh', '-c', 'trap "echo bye; exit" TERM; while sleep 0.1; do echo on; done'];
    const server = await spawner.start(request({ command, onOutput: (line) => lines.push(line) }));
    const { state } = server;
    for (const isPaused of [true, true, false, false, true]) {
      if (isPaused) expect(await spawner.pause?.(state)).toBe(true);
      else await spawner.unpause?.(state);
      expect((await inspect(state)).State.Paused).toBe(isPaused);
      expect(await spawner.poll(state)).toEqual({ running: true });
    }
    const next = await create();
    expect(await next.spawner.restore(state, { onOutput: () => undefined })).toBeDefined();
    await spawner.stop(state, { graceMs: 10_000, signal: signal() });
    await server.exited;
    expect(lines.at(-1)).toBe('bye');
    await expect(spawner.pause?.(state)).rejects.toThrow('No such container');
  });

  test('in a flood of output is read at a bounded rate', async () => {
    const { spawner } = await create();
    let characters = 0;
    const startedAt = performance.now();
    const { state } = await spawner.start(
      request({ command: ['yes'], onOutput: (line) => (characters += line.length + 1) }),
    );
    await until(() => characters > 300_000, 'a part of the flood is read');
    await spawner.stop(state, { graceMs: 0, signal: signal() });
    const seconds = (performance.now() - startedAt) / 1000;
    // Each line of two characters comes in ten bytes.
    expect(characters * 5).toBeLessThan((seconds + 2) * 1.2 * 1024 ** 2);
  });

  test('that ends under the next hub tells its last lines and how it ended', async () => {
    const { spawner } = await create();
    const command = ['sh', '-c', 'trap "echo bye; exit 5" TERM; echo hello; sleep 600 & wait'];
    const lines: string[] = [];
    const { state } = await spawner.start(
      request({ command, onOutput: (line) => lines.push(line) }),
    );
    await until(() => lines.includes('hello'), 'it says hello');
    await spawner[Symbol.asyncDispose]?.();

    const next = await create();
    const lastLines: string[] = [];
    const found = await next.spawner.restore(state, { onOutput: (line) => lastLines.push(line) });
    await docker.getContainer(String(state['container'])).stop({ t: 5 });
    expect(await found?.exited).toEqual({ code: 5, signal: null });
    expect(lastLines.at(-1)).toBe('bye');
  });

  test('that was removed by hand is gone, for a poll too', async () => {
    const { spawner } = await create();
    const server = await spawner.start(request());
    await docker.getContainer(String(server.state['container'])).remove({ force: true });
    await server.exited;
    const exit = { code: null, signal: null, reason: 'its container was removed' };
    expect(await spawner.poll(server.state)).toEqual({ running: false, exit });
    await spawner.stop(server.state, { graceMs: 0, signal: signal() });
  });

  test('that is killed from outside says by which signal', async () => {
    const { spawner } = await create();
    const server = await spawner.start(request());
    await docker.getContainer(String(server.state['container'])).kill({ signal: 'SIGKILL' });
    expect(await server.exited).toEqual({ code: 137, signal: 'SIGKILL' });
  });

  test('is reached at a published port, or at its own address', async () => {
    const network = await docker.createNetwork({ Name: 'servers' });
    try {
      const published = await create({ network: 'servers' });
      const one = await published.spawner.start(request({ command: serves }));
      expect(one.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
      const internal = await create({ network: 'servers', use_internal_ip: true });
      const other = await internal.spawner.start(
        request({ command: serves, serverId: 'server-2', objectName: 'ben' }),
      );
      expect(other.url).toMatch(/^http:\/\/10\.\d+\.\d+\.\d+:8888$/);
      for (const { url } of [one, other]) {
        expect(await waitUntilReady({ url, path: '/', timeoutMs: 30_000 })).toMatchObject({
          ready: true,
        });
      }
      expect(await published.spawner.poll(one.state)).toEqual({ running: true });
      // Restarted by hand it gets another port, at which no visitor would find it.
      await docker.getContainer(String(one.state['container'])).restart({ t: 0 });
      await one.ended;
      expect(await published.spawner.poll(one.state)).toMatchObject({
        running: false,
        exit: { reason: 'its container was restarted and has another address' },
      });
    } finally {
      for (const { Id } of await docker.listContainers({ all: true })) {
        await docker.getContainer(Id).remove({ force: true });
      }
      await network.remove();
    }
  });

  test('does not get visitors while another program has its port', async () => {
    const { spawner } = await create();
    const server = await spawner.start(request());
    const foreignAuthority = createServer((_, response) => response.end('not the server'));
    await new Promise<void>((resolve) =>
      foreignAuthority.listen(Number(new URL(server.url).port), '127.0.0.1', resolve),
    );
    try {
      expect(String(await server.findForeignProcess?.())).toMatch(
        /^pid \d+ \(node\) holds the port \d+$/,
      );
    } finally {
      foreignAuthority.close();
    }
    const other = await spawner.start(
      request({ command: serves, serverId: 'server-2', objectName: 'b' }),
    );
    await waitUntilReady({ url: other.url, path: '/', timeoutMs: 30_000 });
    expect(await other.findForeignProcess?.()).toBeUndefined();
  });

  test.for([
    {
      what: 'a missing command',
      changed: { command: ['no-such-program'] },
      message: `The image ${busyImage} has no such command: no-such-program.`,
    },
    {
      what: 'a command that is no file',
      changed: { command: ['/no/such/program'] },
      message: `The image ${busyImage} has no such command: /no/such/program.`,
    },
    {
      what: 'a folder that does not exist',
      changed: { volumes: [{ source: '/no/such/folder', target: '/data', readOnly: false }] },
      message: "A folder to be mounted does not exist on the engine's machine: /no/such/folder.",
    },
    {
      what: 'a network that does not exist',
      options: { network: 'nowhere' },
      message: /^A network of the servers does not exist: network nowhere not found\.$/,
    },
    {
      what: 'a GPU where there is none',
      changed: { limits: { gpus: 1 } },
      message: /^The container engine has no GPUs to give: /,
    },
    {
      what: 'an image that may not be pulled',
      options: { image: 'none:1', pull_policy: 'never' },
      message: 'The image none:1 is not on the container engine, and none is pulled (pull_policy).',
    },
    {
      what: 'a registry that does not answer',
      options: { image: '127.0.0.1:1/none:1' },
      message: /^The image 127\.0\.0\.1:1\/none:1 could not be pulled: .*connection refused/,
    },
    {
      what: 'a system user',
      changed: { systemUser: 'ann' },
      message: 'Servers in containers know no system users.',
    },
    {
      what: 'a Unix socket',
      changed: { socket: true },
      message: 'Servers in containers cannot listen on a Unix socket.',
    },
    {
      what: 'an image that runs as root',
      options: { user: '0:0' },
      message: `The server is not started: it would run as root in ${busyImage}.`,
    },
    {
      what: 'an image that is not allowed',
      changed: { userOptions: { image: 'evil:1' } },
      message: 'This image is not one of those that may be chosen.',
    },
    {
      what: 'a folder within one that users can write to',
      changed: {
        volumes: [
          { source: '/tmp', target: '/a', readOnly: false },
          { source: '/tmp/ann', target: '/b', readOnly: false },
        ],
      },
      message: 'The volume /tmp/ann cannot be mounted: it lies in /tmp, which users can write to.',
    },
    {
      what: 'a folder above',
      changed: { volumes: [{ source: '/srv/../etc', target: '/a', readOnly: false }] },
      message: 'The volume /srv/../etc cannot be mounted: its path has "." or ".." in it.',
    },
  ] as readonly {
    what: string;
    options?: object;
    changed?: Partial<SpawnRequest>;
    message: string | RegExp;
  }[])(
    'is not started with $what, and the sentence says so',
    async ({ options, changed, message }) => {
      const { spawner } = await create(options);
      await expect(spawner.start(request(changed))).rejects.toThrow(message);
      expect(await docker.listContainers({ all: true })).toEqual([]);
    },
  );

  test('of an image for another architecture says so when it fails', async () => {
    const { spawner } = await create({ image: 'foreign:1' });
    await engine.importForeignImage('foreign:1');
    const server = await spawner.start(request({ command: ['sh'] }));
    expect(String((await server.exited)?.reason)).toMatch(
      /^the image foreign:1 is for a\w+, the engine's machine is a\w+$/,
    );
  });

  test('does not take the name of a container that is not of this hub', async () => {
    const foreign = await docker.createContainer({
      name: 'hub-6f9619ff-ann',
      Image: busyImage,
      Cmd: sleeps,
    });
    const { spawner } = await create();
    await expect(spawner.start(request())).rejects.toThrow(/already in use/);
    expect(await foreign.inspect()).toMatchObject({ Name: '/hub-6f9619ff-ann' });
  });

  test('asks the engine for its GPUs', async () => {
    const { optionsSchema } = dockerPlugin;
    const gpusIn = async (limits: SpawnRequest['limits'], options: object) => {
      const body = createRequest({
        request: request({ limits }) as Parameters<typeof createRequest>[0]['request'],
        options: optionsSchema.parse(options) as DockerOptions,
        hubId: testHubId,
        name: 'with-gpus',
        image: busyImage,
        network: 'host',
        listen: { ip: '127.0.0.1', port: 8888, isPublished: false },
      });
      const container = await docker.createContainer(body);
      const { HostConfig } = await container.inspect();
      await container.remove();
      return HostConfig.DeviceRequests?.map(({ Count, Capabilities }) => ({ Count, Capabilities }));
    };
    const Capabilities = [['gpu']];
    expect(await gpusIn({ gpus: 2 }, { gpus: 'all' })).toEqual([{ Count: 2, Capabilities }]);
    expect(await gpusIn({}, { gpus: 'all' })).toEqual([{ Count: -1, Capabilities }]);
    expect(await gpusIn({ gpus: 0 }, { gpus: 'all' })).toBeFalsy();
  });

  test('tells what it uses', async () => {
    const { spawner } = await create();
    const { state } = await spawner.start(
      request({ command: ['sh', '-c', 'while :; do :; done'] }),
    );
    const measure = async () => (await spawner.usage?.([state, { container: 'none' }])) ?? [];
    await measure();
    await until(async () => ((await measure())[0]?.cpuCores ?? 0) > 0.05, 'the processor is used');
    const [usage, none] = await measure();
    expect(usage?.memoryBytes).toBeGreaterThan(1_000);
    expect(usage?.processes).toBeGreaterThanOrEqual(1);
    expect(none).toBeUndefined();
  });

  test('whose start is given up leaves nothing', async () => {
    const { spawner } = await create();
    const cancel = new AbortController();
    const started = spawner.start(
      request({
        signal: cancel.signal,
        onProgress: ({ progress }) => progress >= 45 && cancel.abort(),
      }),
    );
    await expect(started).rejects.toThrow();
    await until(
      async () => (await docker.listContainers({ all: true })).length === 0,
      'nothing is left',
    );
  });
});
