import KeyvRedis, { createClient } from '@keyv/redis';
import type { Logger } from 'pino';
import { withinTime } from '../concurrency/time-limit.ts';
import { HubError, StartupError } from '../errors.ts';
import { text } from '../texts/text.ts';
import type { SharedAdapter } from './keyv-space.ts';

const connectTimeoutMs = 5000;
const commandTimeoutMs = 3000;
const pingIntervalMs = 5000;
const silenceTimeoutMs = 12_000;
const maxRetryMs = 2000;

/** Expiring state in Redis or Valkey. */
export interface KeyvRedisConnection extends AsyncDisposable {
  createAdapter(namespace: string): SharedAdapter;
}

/** Connects to Redis. Throws a StartupError when it does not answer. */
export async function openKeyvRedis({
  url,
  log,
}: {
  readonly url: string;
  readonly log: Logger;
}): Promise<KeyvRedisConnection> {
  let isStarted = false;
  const client = createClient({
    url,
    name: 'hub',
    // A command waits for the answer, never for the connection to come back.
    disableOfflineQueue: true,
    pingInterval: pingIntervalMs,
    socket: {
      connectTimeout: connectTimeoutMs,
      socketTimeout: silenceTimeoutMs,
      reconnectStrategy: (attempts, cause) =>
        isStarted ? Math.min(50 * 2 ** Math.min(attempts, 10), maxRetryMs) : cause,
    },
  });
  let wasLost = false;
  client.on('error', (error: Error) => {
    // Each attempt to connect again fails with an error; the first tells enough.
    if (isStarted && !wasLost) log.warn({ reason: error.message }, 'Redis connection lost');
    wasLost = true;
  });
  client.on('ready', () => {
    if (isStarted && wasLost) log.info({}, 'Redis reconnected');
    wasLost = false;
  });

  try {
    await client.connect();
    await withinTimeout(client.ping());
  } catch (error) {
    if (client.isOpen) client.destroy();
    throw explain(error, url);
  }
  isStarted = true;

  const redis = new KeyvRedis(client, {
    keyPrefixSeparator: ':',
    throwOnErrors: true,
    throwOnConnectError: true,
  });
  redis.on('error', () => {});

  return {
    createAdapter: (namespace) =>
      createAdapter({
        redis,
        namespace: `hub:${namespace}`,
        evaluate: (script, key, values) =>
          client.eval(script, { keys: [key], arguments: [...values] }),
        isOpen: () => client.isOpen,
      }),
    async [Symbol.asyncDispose]() {
      if (!client.isOpen) return;
      if (client.isReady) await withinTimeout(client.close()).catch(() => client.destroy());
      else client.destroy();
    },
  };
}

interface AdapterOptions {
  readonly redis: KeyvRedis<unknown>;
  readonly namespace: string;
  /** Runs a script. */
  evaluate(script: string, key: string, values: readonly string[]): Promise<unknown>;
  isOpen(): boolean;
}

/** Arguments: the text that must be there ('' for none), the new one ('' for none), its lifetime in milliseconds. */
const replaceScript = `
  local found = redis.call('GET', KEYS[1]) or ''
  if found ~= ARGV[1] then return 0 end
  if ARGV[2] == '' then redis.call('DEL', KEYS[1])
  else redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) end
  return 1`;

/** Bounds every call, turns its failure into a HubError, and opens no closed connection again. */
function createAdapter({ redis, namespace, evaluate, isOpen }: AdapterOptions): SharedAdapter {
  const prefixed = (key: string) => `${namespace}:${key}`;

  async function call<T>(command: () => Promise<T>): Promise<T> {
    if (!isOpen()) throw unavailable(new Error('the connection is closed'));
    try {
      return await withinTimeout(command());
    } catch (error) {
      throw unavailable(error);
    }
  }

  const adapter: SharedAdapter = {
    opts: { dialect: 'redis', url: '' },
    get: <Value>(key: string) => call(() => redis.get<Value>(prefixed(key))),
    getMany: <Value>(keys: string[]) => call(() => redis.getMany<Value>(keys.map(prefixed))),
    set: (key: string, value: string, lifetimeMs?: number) =>
      call(() => redis.set(prefixed(key), value, wholeMs(lifetimeMs))),
    async replace(key, former = '', next) {
      const values = [former, next?.text ?? '', String(wholeMs(next?.lifetimeMs) ?? 0)];
      return (await call(() => evaluate(replaceScript, prefixed(key), values))) === 1;
    },
    delete: (key) => call(() => redis.delete(prefixed(key))),
    deleteMany: (keys) => call(() => redis.deleteMany(keys.map(prefixed))),
    has: (key) => call(() => redis.has(prefixed(key))),
    async clear() {
      // The library's own clear reports no failure.
      const keys: string[] = [];
      for await (const [key] of iterate()) keys.push(prefixed(key));
      if (keys.length > 0) await call(() => redis.deleteMany(keys));
    },
    async *iterator<Value>() {
      for await (const [key, value] of iterate()) yield [key, value as Awaited<Value>];
    },
    on: () => adapter,
  };

  async function* iterate(): AsyncGenerator<[string, unknown], void> {
    const entries = redis.iterator<unknown>(namespace);
    for (;;) {
      const { value, done } = await call(() => entries.next());
      if (done === true || value === undefined) return;
      yield value;
    }
  }

  return adapter;
}

/** Redis takes whole milliseconds, at least one. */
function wholeMs(lifetimeMs: number | undefined): number | undefined {
  return lifetimeMs === undefined ? undefined : Math.max(1, Math.ceil(lifetimeMs));
}

function withinTimeout<T>(result: Promise<T>): Promise<T> {
  return withinTime(result, commandTimeoutMs, (): never => {
    throw new Error(`Redis gave no answer within ${commandTimeoutMs} ms`);
  });
}

function unavailable(cause: unknown): HubError {
  return new HubError('storage_unavailable', text`The store of sessions cannot be reached.`, {
    cause,
    hint: text`Try again in a moment. If it stays so, tell the operator of this hub.`,
    retryAfterSeconds: 5,
  });
}

function explain(error: unknown, url: string): StartupError {
  const parsed = URL.parse(url);
  const address = `Redis at ${parsed?.hostname || 'localhost'}:${parsed?.port || '6379'}`;
  const message = error instanceof Error ? error.message : String(error);
  if (/WRONGPASS|NOAUTH|NOPERM|AUTH failed/i.test(message)) {
    return new StartupError(`${address} refuses the user or the password of Hub.keyv_url`);
  }
  return new StartupError(`${address} does not answer: start it, or correct Hub.keyv_url`);
}
