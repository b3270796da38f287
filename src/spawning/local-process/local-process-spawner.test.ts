import { type ChildProcess, spawn } from 'node:child_process';
import { stat } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { env } from 'node:process';
import { describe, expect, test } from 'vitest';
import { testSurroundings } from '../../../test/contract/test-host.ts';
import {
  isReady,
  pidOf,
  silentLog,
  useLocalSpawners,
} from '../../../test/support/local-spawners.ts';
import { pathOf, requires } from '../../../test/support/requires.ts';
import { fixtureApp } from '../../../test/support/server-hub.ts';
import { sharePrograms } from '../../../test/support/shared-programs.ts';
import { until } from '../../../test/support/test-hub.ts';
import { identifyProcess, isSameProcess } from '../../platform/process-table/process-table.ts';
import { localProcessPlugin } from './local-process-plugin.ts';

const { directory, lines, createSpawner, start, stop, seen } = useLocalSpawners();

describe('a local server', () => {
  test('starts on a port of its own, in a directory that is made for it, and stops', async () => {
    const spawner = createSpawner();
    const server = await start(spawner);
    expect(server.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect(await isReady(server)).toMatchObject({ ready: true, status: 200 });
    expect(await spawner.poll(server.state)).toEqual({ running: true });
    expect((await stat(join(directory(), 'homes', 'ann'))).mode & 0o777).toBe(0o700);
    await seen(`listening on ${server.url}`);
    const [usage] = (await spawner.usage?.([server.state])) ?? [];
    expect(usage).toMatchObject({ processes: 1 });

    await stop(spawner, server);
    await stop(spawner, server);
    expect(await spawner.poll(server.state)).toEqual({ running: false });
    expect(await server.exited).toEqual({ code: null, signal: 'SIGTERM' });
  });

  test.runIf(requires('setsid'))(
    'is measured with what has left its tree and its session',
    async () => {
      const spawner = createSpawner();
      const left = `(${pathOf('setsid')} sh -c "echo left; sleep 600; :" &); exec "$@"`;
      const command = ['sh', '-c', left, 'sh', ...fixtureApp('web-server')];
      const server = await start(spawner, { command });
      await seen('left');
      // The shell and what it waits for.
      const measured = async () => (await spawner.usage?.([server.state]))?.[0]?.processes;
      await until(async () => (await measured()) === 3, 'all are measured');
      await stop(spawner, server);
    },
  );

  test('starts on a Unix socket that no other account can reach, gone afterwards', async () => {
    const spawner = createSpawner();
    const server = await start(spawner, { socket: true });
    const path = decodeURIComponent(server.url.replace('http+unix://', ''));
    expect(Buffer.byteLength(path)).toBeLessThanOrEqual(107);
    expect(await isReady(server)).toMatchObject({ ready: true, status: 200 });
    expect((await stat(join(path, '..'))).mode & 0o777).toBe(0o700);
    await stop(spawner, server);
    await expect(stat(join(path, '..'))).rejects.toThrow('ENOENT');
  });

  test('is told its address in its command too, and has its directory as home', async () => {
    const spawner = createSpawner();
    const command = ['sh', '-c', 'echo "$0 $1 $HOME"; sleep 60', 'at {ip}:{port}', '{other}'];
    const server = await start(spawner, { command });
    const line = await seen('at 127');
    expect(`http://${line.split(' ')[1]}`).toBe(server.url);
    expect(line).toMatch(/ \{other\} .*homes\/ann$/);
  });

  test('is told its address behind a -- too, but not where hub-singleuser tells an app its own', async () => {
    const spawner = createSpawner();
    const script = 'echo "$0 $*"; sleep 60';
    const plain = await start(spawner, { command: ['sh', '-c', script, '--', 'plain {port}'] });
    const plainLine = await seen('plain');
    expect(plainLine).toContain(new URL(plain.url).port);
    const command = ['sh', '-c', script, 'hub-singleuser', '{ip}', '--', 'guarded {port}'];
    await start(spawner, { serverId: 'server-2', command });
    expect(await seen('guarded')).toContain('hub-singleuser 127.0.0.1 -- guarded {port}');
  });

  test('never shares a port with another one that has not begun to listen', async () => {
    const spawner = createSpawner();
    const servers = await Promise.all(
      Array.from({ length: 5 }, (_, index) => start(spawner, { serverId: `server-${index}` })),
    );
    expect(new Set(servers.map(({ url }) => url)).size).toBe(5);
  });

  test('listens on every address when it should, and is reached on the loopback one', async () => {
    const spawner = createSpawner();
    const server = await start(spawner, { ip: '0.0.0.0' });
    expect(server.url).toMatch(/^http:\/\/127\.0\.0\.1:/);
    await seen('listening on http://0.0.0.0:');
    expect(await isReady(server)).toMatchObject({ ready: true });
  });

  test('that ends by itself is known with its exit code', async () => {
    const spawner = createSpawner();
    const server = await start(spawner, { command: fixtureApp('exit-at-once', '4') });
    expect(await server.exited).toEqual({ code: 4, signal: null });
    expect(await spawner.poll(server.state)).toMatchObject({ running: false, exit: { code: 4 } });
    expect(lines).toContain('something is missing');
  });

  test('ends with everything it started, though it ignores SIGTERM', async () => {
    const spawner = createSpawner();
    const server = await start(spawner, { command: fixtureApp('leaves-children', 'stay') });
    const children = Object.values<number>(JSON.parse(await seen('sameGroup')));
    const identities = [pidOf(server), ...children].map((pid) => identifyProcess(pid));
    await stop(spawner, server);
    expect(identities.map((each) => each && isSameProcess(each))).toEqual([false, false, false]);
  });

  test('does not print its tokens into the log', async () => {
    const spawner = createSpawner();
    const environment = { PATH: env['PATH'] ?? '', HUB_API_TOKEN: 'hub_very_secret' };
    await start(spawner, {
      command: ['sh', '-c', 'echo "is $HUB_API_TOKEN"; sleep 60'],
      environment,
    });
    expect(await seen('is ')).toBe('is [secret]');
  });

  test.each([
    ['no-such-command', /cannot be started: command not found in PATH: no-such-command/],
    ['/etc/passwd', /cannot be started: permission denied: \/etc\/passwd/],
  ])('whose command is %s does not start and says why', async (command, message) => {
    await expect(start(createSpawner(), { command: [command] })).rejects.toThrow(message);
  });

  test('whose directory cannot be made does not start and says why', async () => {
    const workingDirectory = '/proc/nowhere/ann';
    await expect(start(createSpawner(), { workingDirectory })).rejects.toThrow(
      'The directory /proc/nowhere/ann of the server cannot be made.',
    );
  });

  test('whose start is given up is ended', async () => {
    const controller = new AbortController();
    const onOutput = (line: string) => {
      lines.push(line);
      controller.abort();
    };
    const command = ['sh', '-c', 'echo pid $$; exec sleep 60'];
    // Until its first line is read.
    const spawner = createSpawner(600_000);
    const starting = start(spawner, { command, onOutput, signal: controller.signal });
    await expect(starting).rejects.toThrow('given up');
    expect(identifyProcess(Number(lines[0]?.split(' ')[1]))).toBeUndefined();
  });
});

test('a server whose port another program of its account takes gets another one', async () => {
  const thieves: ReturnType<typeof createServer>[] = [];
  const urls: string[] = [];
  const spawner = createSpawner(30_000);
  try {
    const server = await start(spawner, {
      // Asked for just before the start: the moment a thief would have.
      environmentForUrl: (url) => {
        urls.push(url);
        const { port } = new URL(url);
        if (urls.length === 1) thieves.push(createServer().listen(Number(port), '127.0.0.1'));
        return { HUB_SERVICE_URL: url };
      },
    });
    // Some other program may have taken the second one too.
    expect(urls.length).toBeGreaterThanOrEqual(2);
    expect(server.url).toBe(urls.at(-1));
    expect(await isReady(server)).toMatchObject({ ready: true });
  } finally {
    for (const thief of thieves) {
      thief.closeAllConnections();
      thief.close();
    }
  }
});

describe.runIf(requires('root'))('a server of a system user', () => {
  test('runs as that user, in a directory of that user', async () => {
    await using programs = await sharePrograms('web-server.cjs');
    const command = [
      'sh',
      '-c',
      'echo "$(id -un) $USER $PWD"; touch file; exec "$0" "$1"',
      ...programs.app('web-server.cjs'),
    ];
    const server = await start(createSpawner(), { command, systemUser: 'nobody', socket: true });
    const home = join(directory(), 'homes', 'ann');
    expect(await seen('nobody')).toBe(`nobody nobody ${home}`);
    expect(await isReady(server)).toMatchObject({ ready: true });
    expect((await stat(home)).uid).toBe(65534);
    expect((await stat(join(home, 'file'))).uid).toBe(65534);
  });

  test('that does not exist does not start', async () => {
    await expect(start(createSpawner(), { systemUser: 'no-such-user' })).rejects.toThrow(
      'there is no system user "no-such-user"',
    );
  });

  test('gets another port when a program of another account listens on its own', async () => {
    await using programs = await sharePrograms('web-server.cjs');
    const thieves: ChildProcess[] = [];
    const urls: string[] = [];
    // The first one never listens, so only the account tells that the listener is not the server.
    const listenLater = [
      'sh',
      '-c',
      'if [ -e late ]; then exec "$0" "$1"; fi; touch late; sleep 60',
      ...programs.app('web-server.cjs'),
    ];
    const squat = `require('net').createServer().listen(+process.argv[1], '127.0.0.1', () => console.log('up'))`;
    try {
      const spawner = createSpawner(30_000);
      const server = await start(spawner, {
        command: listenLater,
        systemUser: 'nobody',
        environmentForUrl: (url) => {
          urls.push(url);
          if (urls.length === 1) {
            const port = new URL(url).port;
            thieves.push(spawn(programs.node, ['-e', squat, port], { uid: 1, gid: 1 }));
          }
          return { HUB_SERVICE_URL: url };
        },
      });
      // Some other program may have taken the second one too.
      expect(urls.length).toBeGreaterThanOrEqual(2);
      expect(server.url).toBe(urls.at(-1));
    } finally {
      for (const thief of thieves) thief.kill('SIGKILL');
    }
  });
});

test('the plugin checks its options and makes a spawner', async () => {
  const options = localProcessPlugin.optionsSchema.parse({});
  expect(options).toEqual({ memory_check_interval: 2, warm: [] });
  expect(localProcessPlugin.optionsSchema.safeParse({ typo: 1 }).success).toBe(false);
  const spawner = await localProcessPlugin.create(options, {
    ...testSurroundings,
    log: silentLog,
    runtimeDirectory: directory(),
    hubId: 'hub',
    activeServers: async () => new Set<string>(),
  });
  await spawner[Symbol.asyncDispose]?.();
});
