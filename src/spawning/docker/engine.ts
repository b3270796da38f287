import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import type Docker from 'dockerode';
import { timeLimit } from '../../platform/concurrency/time-limit.ts';
import { HubError, messageOf } from '../../platform/errors.ts';
import { text } from '../../platform/texts/text.ts';
import type { DockerOptions } from './docker-options.ts';
import { defaultEngine, parseEngineAddress } from './engine-address.ts';
import { explainUnreachable, isEngineAnswer } from './engine-errors.ts';

/** The API of an engine, Docker or Podman. */
export interface Engine {
  /** Loads the library, which keeps the process busy for a while; the first call does it otherwise. */
  load(): Promise<void>;
  /**
   * Calls the API. Rejects with `unavailable` when the engine does not answer in time, and with the
   * library's error when it refuses; see `engine-errors.ts`.
   */
  call<Result>(
    work: (docker: Docker, signal: AbortSignal) => Promise<Result>,
    options?: CallOptions,
  ): Promise<Result>;
  /** Where the engine is, as DOCKER_HOST has it. */
  address(): Promise<string>;
  /** Host of the engine, undefined behind a socket. */
  remoteHost(): Promise<string | undefined>;
}

export interface CallOptions {
  readonly signal?: AbortSignal;
  /** Added to what the engine has for each answer. */
  readonly extraMs?: number;
  /** For answers that last as long as what they tell of. */
  readonly isStream?: boolean;
}

export type EngineOptions = Pick<
  DockerOptions,
  'host' | 'tls_ca' | 'tls_cert' | 'tls_key' | 'api_timeout'
>;

/** Creates the client of an engine; connects to nothing. Relative files are those of `directory`. */
export function createEngine(options: EngineOptions, directory: string): Engine {
  let connecting: Promise<Docker> | undefined;

  async function connect(): Promise<Docker> {
    const { default: DockerClient } = await import('dockerode');
    const address = options.host === undefined ? undefined : parseEngineAddress(options.host);
    // Without an address the library reads DOCKER_HOST, DOCKER_TLS_VERIFY and DOCKER_CERT_PATH.
    if (address === undefined) return new DockerClient();
    if (address.kind === 'socket') return new DockerClient({ socketPath: address.path });
    const read = (file: string | undefined) =>
      file === undefined ? undefined : readFile(resolve(directory, file));
    const [ca, cert, key] = await Promise.all(
      [options.tls_ca, options.tls_cert, options.tls_key].map(read),
    );
    const isEncrypted = ca !== undefined || cert !== undefined || address.port === 2376;
    return new DockerClient({
      host: address.host,
      port: address.port,
      protocol: isEncrypted ? 'https' : 'http',
      ...(ca === undefined ? {} : { ca: ca.toString() }),
      ...(cert === undefined ? {} : { cert: cert.toString() }),
      ...(key === undefined ? {} : { key: key.toString() }),
    });
  }

  function docker(): Promise<Docker> {
    connecting ??= connect().catch((thrown: unknown) => {
      connecting = undefined;
      throw new HubError(
        'unavailable',
        text`The container engine cannot be used: ${messageOf(thrown)}.`,
        {
          cause: thrown,
        },
      );
    });
    return connecting;
  }

  return {
    async load() {
      await import('dockerode');
    },

    async call(work, { signal, extraMs = 0, isStream = false } = {}) {
      signal?.throwIfAborted();
      const client = await docker();
      const deadline = isStream ? [] : [timeLimit(options.api_timeout * 1000 + extraMs)];
      const limits = [...deadline, ...(signal === undefined ? [] : [signal])];
      const limit = AbortSignal.any(limits);
      try {
        return await orAbort(work(client, limit), limit);
      } catch (thrown) {
        signal?.throwIfAborted();
        if (isEngineAnswer(thrown)) throw thrown;
        throw explainUnreachable(thrown, addressOf(client));
      }
    },

    async address() {
      return addressOf(await docker());
    },

    async remoteHost() {
      return modemOf(await docker()).host ?? undefined;
    },
  };
}

/** Where the library connects to; its types leave that out. */
interface Modem {
  readonly host?: string | null;
  readonly port?: string | number | null;
  readonly socketPath?: unknown;
}

function modemOf({ modem }: Docker): Modem {
  return modem as unknown as Modem;
}

/** The address that the library uses, for messages. */
function addressOf(docker: Docker): string {
  const { host, port, socketPath } = modemOf(docker);
  if (typeof host === 'string') return `tcp://${host}:${port}`;
  return typeof socketPath === 'string' ? `unix://${socketPath}` : defaultEngine;
}

/** Rejects as soon as the signal aborts, whether or not the library hears of it in each of its calls. */
async function orAbort<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(signal.reason);
  if (signal.aborted) onAbort();
  signal.addEventListener('abort', onAbort);
  work.catch(() => undefined);
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
