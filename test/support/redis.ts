import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import { freePort } from './free-port.ts';
import { pathOf, requires } from './requires.ts';

/** A Redis on loopback that keeps nothing on disk. */
export interface RedisServer extends AsyncDisposable {
  readonly url: string;
  /** Ends the server at once. */
  stop(): Promise<void>;
  /** Starts it again, empty, on the same port. */
  start(): Promise<void>;
  /** Keeps the connections open but answers nothing. */
  freeze(): void;
  thaw(): void;
}

/** Whether Redis is installed; see requires. */
export function hasRedis(): boolean {
  return requires('redis');
}

/** Starts a real Redis on a free port; it asks for a password when one is given. */
export async function startRedis({
  password,
}: {
  readonly password?: string;
} = {}): Promise<RedisServer> {
  const directory = mkdtempSync(join(tmpdir(), 'hub-redis-'));
  const port = await freePort();
  let server: ChildProcess | undefined;

  async function start(): Promise<void> {
    const settings = ['--port', String(port), '--bind', '127.0.0.1', '--dir', directory];
    const started = spawn(
      pathOf('redis'),
      [...settings, '--save', '', ...(password === undefined ? [] : ['--requirepass', password])],
      { stdio: ['ignore', 'pipe', 'ignore'] },
    );
    server = started;
    const ready = Promise.withResolvers<void>();
    let output = '';
    started.stdout.setEncoding('utf8').on('data', (text: string) => {
      output = (output + text).slice(-4000);
      if (output.includes('eady to accept connections')) ready.resolve();
    });
    started.once('exit', () => ready.reject(new Error(`redis-server ended: ${output}`)));
    await ready.promise;
  }

  async function stop(): Promise<void> {
    if (server === undefined || server.exitCode !== null || server.signalCode !== null) return;
    const exit = once(server, 'exit');
    server.kill('SIGKILL');
    await exit;
  }

  const endWithProcess = () => server?.kill('SIGKILL');
  process.once('exit', endWithProcess);
  await start();
  return {
    url: `redis://${password === undefined ? '' : `:${password}@`}127.0.0.1:${port}`,
    start,
    stop,
    freeze: () => server?.kill('SIGSTOP'),
    thaw: () => server?.kill('SIGCONT'),
    async [Symbol.asyncDispose]() {
      process.off('exit', endWithProcess);
      await stop();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** Starts a Redis for the tests of the surrounding `describe` and ends it after them. */
export function useRedis(): () => RedisServer {
  let server: RedisServer | undefined;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(async () => {
    await server?.[Symbol.asyncDispose]();
  });
  return () => {
    if (server === undefined) throw new Error('Redis has not been started');
    return server;
  };
}
