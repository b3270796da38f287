import { access } from 'node:fs/promises';
import type { RequestOptions } from 'node:https';
import { resolve } from 'node:path';
import { createSecureContext } from 'node:tls';
import type { KubeConfig } from '@kubernetes/client-node';
import type { Dispatcher } from 'undici';
import { createLimiter } from '../../platform/concurrency/limiter.ts';
import { timeLimit } from '../../platform/concurrency/time-limit.ts';
import { createEventLoopYield } from '../../platform/concurrency/turns.ts';
import { HubError } from '../../platform/errors.ts';
import { type Text, text } from '../../platform/texts/text.ts';
import { systemClock } from '../processes/clock.ts';
import { ApiRefusal, type ApiStatus, explainUnreachable, messageOf } from './api-errors.ts';
import type { KubernetesOptions } from './kubernetes-options.ts';

/** The API of a Kubernetes cluster. */
export interface Cluster {
  /** Loads library and configuration; throws with a sentence when there is none or it is wrong. */
  load(): Promise<void>;
  /** Namespace of the context, or of the pod in which the hub runs. */
  defaultNamespace(): Promise<string>;
  /**
   * Calls the API. Rejects with `unavailable` when it does not answer in time, and with `ApiRefusal` when it
   * refuses. JSON goes as it is: what a newer API knows and the library does not is kept.
   */
  call<Result = unknown>(method: ApiMethod, path: string, options?: CallOptions): Promise<Result>;
  /** Opens an answer that lasts as long as what it tells of. */
  stream(path: string, options: StreamOptions): Promise<AsyncIterable<Uint8Array>>;
  [Symbol.asyncDispose](): Promise<void>;
}

type ApiMethod = 'GET' | 'POST' | 'PATCH' | 'DELETE';
type Query = Readonly<Record<string, string | number | boolean | undefined>>;

interface CallOptions {
  readonly query?: Query;
  readonly body?: unknown;
  readonly signal?: AbortSignal | undefined;
  /** Whether the answer is text, not JSON. */
  readonly asText?: boolean;
}

interface StreamOptions {
  readonly query: Query;
  readonly signal: AbortSignal;
  /** After how long without a byte the answer fails. */
  readonly idleMs: number;
}

interface Credentials {
  readonly headers: Readonly<Record<string, string>>;
  readonly untilMs: number;
}

interface Connection {
  readonly config: KubeConfig;
  readonly server: string;
  readonly http: typeof import('undici');
  credentials?: Promise<Credentials> | undefined;
  dispatcher?: { readonly agent: Dispatcher; readonly untilMs: number };
}

/** Tokens of service accounts are read again this often; they are replaced well before they expire. */
const credentialsMs = 60_000;
/** Certificates are read again this often. */
const dispatcherMs = 600_000;
const parallelCalls = 24;
const maxAttempts = 4;
const maxRetryMs = 10_000;
const contentTypes: Readonly<Record<string, string>> = {
  POST: 'application/json',
  DELETE: 'application/json',
  PATCH: 'application/merge-patch+json',
};

/** Creates the client of a cluster; connects to nothing. Relative files are those of `directory`. */
export function createCluster(
  options: Pick<KubernetesOptions, 'kubeconfig' | 'context' | 'api_timeout'>,
  directory: string,
): Cluster {
  const inTurn = createLimiter(parallelCalls);
  const yieldToEventLoop = createEventLoopYield();
  let connecting: Promise<Connection> | undefined;

  async function connect(): Promise<Connection> {
    const file = options.kubeconfig && resolve(directory, options.kubeconfig);
    if (file !== undefined) await requireReadable(file);
    const [library, http] = await Promise.all([
      import('@kubernetes/client-node'),
      import('undici'),
    ]);
    const config = new library.KubeConfig();
    try {
      if (file === undefined) config.loadFromDefault();
      else config.loadFromFile(file);
    } catch (thrown) {
      throw unusable(text`The kubeconfig cannot be read: ${messageOf(thrown)}.`, thrown);
    }
    if (options.context !== undefined) {
      if (config.getContextObject(options.context) === null) {
        throw unusable(text`The kubeconfig has no context "${options.context}".`);
      }
      config.setCurrentContext(options.context);
    }
    const cluster = config.getCurrentCluster();
    if (cluster === null) throw unusable(text`The kubeconfig names no current context or cluster.`);
    // What the library falls back to where there is no configuration at all.
    if (file === undefined && cluster.server === 'http://localhost:8080') {
      throw unusable(text`The hub runs in no pod, and there is no kubeconfig.`);
    }
    return { config, server: cluster.server.replace(/\/$/, ''), http };
  }

  function connection(): Promise<Connection> {
    connecting ??= connect().catch((thrown: unknown) => {
      connecting = undefined;
      throw thrown;
    });
    return connecting;
  }

  /** The library makes a connection pool for each request; one is kept here. */
  async function authenticate(active: Connection): Promise<Credentials> {
    const { config, server } = active;
    const { RequestContext, HttpMethod } = await import('@kubernetes/client-node');
    const context = new RequestContext(server, HttpMethod.GET);
    await config.applySecurityAuthentication(context);
    const nowMs = performance.now();
    if (active.dispatcher === undefined || active.dispatcher.untilMs < nowMs) {
      const former = active.dispatcher?.agent;
      const agent = (await agentOf(active)) ?? context.getDispatcher() ?? new active.http.Agent();
      active.dispatcher = { agent, untilMs: nowMs + dispatcherMs };
      // It ends once what is under way, such as a watch, has ended.
      void former?.close().catch(() => undefined);
    }
    return { headers: context.getHeaders(), untilMs: nowMs + credentialsMs };
  }

  async function credentialsOf(active: Connection): Promise<Credentials> {
    const known = await active.credentials;
    if (known !== undefined && known.untilMs >= performance.now()) return known;
    active.credentials = authenticate(active).catch((thrown: unknown) => {
      active.credentials = undefined;
      throw unusable(
        text`The credentials of the Kubernetes API fail: ${messageOf(thrown)}.`,
        thrown,
      );
    });
    return active.credentials;
  }

  async function send(
    method: ApiMethod,
    path: string,
    request: {
      readonly query?: Query | undefined;
      readonly body?: unknown;
      readonly signal: AbortSignal;
      readonly idleMs?: number;
    },
  ): Promise<Dispatcher.ResponseData> {
    const active = await connection();
    const { server, http } = active;
    const { headers } = await credentialsOf(active);
    const { signal, idleMs, body } = request;
    const url = new URL(server + path);
    for (const [name, value] of Object.entries(request.query ?? {})) {
      if (value !== undefined) url.searchParams.set(name, String(value));
    }
    // A connection begins with work for the processor.
    await yieldToEventLoop();
    try {
      return await http.request(url, {
        method,
        signal,
        ...(active.dispatcher === undefined ? {} : { dispatcher: active.dispatcher.agent }),
        headers: {
          ...headers,
          accept: 'application/json, */*',
          ...(body === undefined ? {} : { 'content-type': contentTypes[method] ?? '' }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        ...(idleMs === undefined ? {} : { headersTimeout: idleMs, bodyTimeout: idleMs }),
      });
    } catch (thrown) {
      throw explainUnreachable(thrown, server);
    }
  }

  async function refusalOf(response: Dispatcher.ResponseData): Promise<ApiRefusal> {
    const text = await response.body.text();
    let status: ApiStatus = {};
    try {
      status = JSON.parse(text) as ApiStatus;
    } catch {
      status = text.trim() === '' ? {} : { message: text };
    }
    return new ApiRefusal(response.statusCode, status);
  }

  /** Sends a request; again when the API says that it is busy (429) or has new credentials to see (401). */
  async function sendPatiently(
    method: ApiMethod,
    path: string,
    request: Parameters<typeof send>[2],
  ): Promise<Dispatcher.ResponseData> {
    for (let attempt = 1; ; attempt += 1) {
      const response = await send(method, path, request);
      const { statusCode } = response;
      if (statusCode < 300) return response;
      const refusal = await refusalOf(response);
      const active = await connection();
      if (statusCode === 401 && attempt === 1) {
        active.credentials = undefined;
        continue;
      }
      if (statusCode === 429 && attempt < maxAttempts) {
        const retryAfterMs = Number(response.headers['retry-after'] ?? 1) * 1000;
        await systemClock.sleep(Math.min(retryAfterMs || 1000, maxRetryMs), request.signal);
        request.signal.throwIfAborted();
        continue;
      }
      throw statusCode >= 500 ? explainUnreachable(refusal, active.server) : refusal;
    }
  }

  return {
    async load() {
      await connection();
    },

    async defaultNamespace() {
      const { config } = await connection();
      return config.getContextObject(config.getCurrentContext())?.namespace ?? 'default';
    },

    async call<Result>(
      method: ApiMethod,
      path: string,
      { query, body, signal, asText = false }: CallOptions = {},
    ) {
      signal?.throwIfAborted();
      return inTurn(async () => {
        const limits = [timeLimit(options.api_timeout * 1000)];
        const limit = AbortSignal.any(signal === undefined ? limits : [...limits, signal]);
        try {
          const response = await sendPatiently(method, path, { query, body, signal: limit });
          const answer: unknown = asText ? await response.body.text() : await response.body.json();
          return answer as Result;
        } catch (thrown) {
          signal?.throwIfAborted();
          if (thrown instanceof ApiRefusal || thrown instanceof HubError) throw thrown;
          throw explainUnreachable(thrown, (await connection()).server);
        }
      }, signal);
    },

    async stream(path, { query, signal, idleMs }) {
      const { body } = await sendPatiently('GET', path, { query, signal, idleMs });
      const { server } = await connection();
      return explained(body, server);
    },

    async [Symbol.asyncDispose]() {
      const active = await connecting?.catch(() => undefined);
      if (active === undefined) return;
      const { dispatcher } = active;
      // A call that comes all the same connects again.
      delete active.dispatcher;
      delete active.credentials;
      // Not waited for: what is under way is of no use any more.
      void dispatcher?.agent.destroy().catch(() => undefined);
    },
  };
}

/**
 * An agent that connects with certificates and reads them once: the library's takes milliseconds for that with each
 * connection. Undefined where there are none, or a proxy is in between.
 */
async function agentOf({ config, http }: Connection): Promise<Dispatcher | undefined> {
  const request: RequestOptions = {};
  await config.applyToHTTPSOptions(request);
  const { ca, cert, key, pfx, passphrase, rejectUnauthorized, servername } = request;
  const certificates = { ca, cert, key, pfx, passphrase };
  const options = config.createDispatcherOptions(config.getCurrentCluster(), certificates);
  if (options.type !== 'agent') return undefined;
  const { keepAlive = true, keepAliveInitialDelay = 30_000 } = options.connect;
  return new http.Agent({
    connect: {
      secureContext: createSecureContext(certificates),
      ...(rejectUnauthorized === undefined ? {} : { rejectUnauthorized }),
      ...(servername === undefined ? {} : { servername }),
      keepAlive,
      keepAliveInitialDelay,
    },
  });
}

async function* explained(
  body: AsyncIterable<Uint8Array>,
  server: string,
): AsyncGenerator<Uint8Array> {
  try {
    yield* body;
  } catch (thrown) {
    throw explainUnreachable(thrown, server);
  }
}

async function requireReadable(file: string): Promise<void> {
  try {
    await access(file);
  } catch (thrown) {
    throw unusable(text`The kubeconfig ${file} cannot be read.`, thrown);
  }
}

function unusable(message: Text, cause?: unknown): HubError {
  return new HubError('unavailable', message, {
    hint: text`The administrator must correct KubernetesSpawner.kubeconfig and context.`,
    ...(cause === undefined ? {} : { cause }),
  });
}
