import type { JWTVerifyGetKey } from 'jose';
import type { Configuration } from 'openid-client';
import type { PluginLog, ProviderStatus } from '../../src/plugin/plugin.ts';
import { explainFailure } from './provider-errors.ts';

/** A provider whose addresses are known. */
export interface Connection {
  readonly config: Configuration;
  /** The provider's public keys; undefined for plain OAuth 2, which signs nothing. */
  readonly keys: JWTVerifyGetKey | undefined;
}

/** Connects to a provider when it is first needed, and again until it answers. */
export interface Connector {
  /** Begins to connect, without waiting: the hub starts all the same. */
  start(): void;
  /** Throws what the attempt threw when there has never been a connection. */
  get(): Promise<Connection>;
  /** The connection there is; never waits. */
  current(): Connection | undefined;
  /** Notes that a later call could not reach the provider, for the login page. */
  noteFailure(explanation: string): void;
  noteSuccess(): void;
  status(): ProviderStatus;
  close(): void;
}

/** How long what a provider says of itself is believed. */
const metadataLifetimeMs = 3600_000;
const shortestPauseMs = 2_000;
const maxPauseMs = 60_000;
const cachedFailureMs = 30_000;

/** Creates the connector; nothing is connected yet. */
export function createConnector(parts: {
  readonly connect: () => Promise<Connection>;
  readonly log: PluginLog;
}): Connector {
  const { connect, log } = parts;
  let connection: Connection | undefined;
  let connectedAt = 0;
  let attempt: Promise<Connection> | undefined;
  let failure: { readonly message: string; readonly at: number } | undefined;
  let timer: NodeJS.Timeout | undefined;
  let pauseMs = shortestPauseMs;
  let isClosed = false;

  function startAttempt(): Promise<Connection> {
    attempt ??= connect()
      .then(
        (made) => {
          if (failure !== undefined) log.info({}, 'login provider reachable again');
          connection = made;
          connectedAt = performance.now();
          failure = undefined;
          pauseMs = shortestPauseMs;
          return made;
        },
        (error: unknown) => {
          const { explanation } = explainFailure(error);
          if (failure?.message !== explanation) {
            log.warn({ reason: explanation }, 'login provider unavailable, trying again');
          }
          failure = { message: explanation, at: performance.now() };
          if (connection === undefined) retryLater();
          throw error;
        },
      )
      .finally(() => {
        attempt = undefined;
      });
    return attempt;
  }

  function retryLater(): void {
    if (isClosed || timer !== undefined) return;
    timer = setTimeout(() => {
      timer = undefined;
      startAttempt().catch(() => {});
    }, pauseMs);
    timer.unref();
    pauseMs = Math.min(pauseMs * 2, maxPauseMs);
  }

  return {
    start() {
      startAttempt().catch(() => {});
    },
    async get() {
      if (connection !== undefined && performance.now() - connectedAt < metadataLifetimeMs) {
        return connection;
      }
      const former = connection;
      if (former === undefined) return await startAttempt();
      // What is known goes on to work while the provider does not say whether it still holds.
      return await startAttempt().catch(() => former);
    },
    current: () => connection,
    noteFailure(message) {
      failure = { message, at: performance.now() };
    },
    noteSuccess() {
      failure = undefined;
    },
    status() {
      if (failure === undefined) return { state: 'ready' };
      const isOver = connection !== undefined && performance.now() - failure.at > cachedFailureMs;
      return isOver ? { state: 'ready' } : { state: 'unavailable', message: failure.message };
    },
    close() {
      isClosed = true;
      clearTimeout(timer);
    },
  };
}
