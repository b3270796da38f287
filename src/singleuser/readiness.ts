import { request } from 'node:http';
import type { UpstreamAddress } from '../proxy/upstream-address.ts';

/** Knows whether the app answers yet. */
export interface Readiness extends Disposable {
  readonly isReady: boolean;
  /** Resolves when the app has answered for the first time. */
  readonly ready: Promise<void>;
}

const intervalMs = 100;
const timeoutMs = 5_000;

/** Polls a path of the app until it answers, with any status. */
export function watchReadiness(address: UpstreamAddress, path: string): Readiness {
  const { promise: ready, resolve } = Promise.withResolvers<void>();
  let isReady = false;
  let timer: NodeJS.Timeout | undefined;
  let isDisposed = false;

  function ask(): void {
    const { hostname, port, socketPath } = address;
    const asked = request({
      ...(socketPath === undefined ? { host: hostname, port } : { socketPath }),
      path,
      agent: false,
      timeout: timeoutMs,
      headers: { host: 'localhost', accept: '*/*' },
    });
    asked.once('response', (response) => {
      isReady = true;
      response.destroy();
      resolve();
    });
    asked.once('timeout', () => asked.destroy());
    // Until the app listens, failing is what is expected.
    asked.on('error', () => undefined);
    asked.once('close', () => {
      if (!isReady && !isDisposed) timer = setTimeout(ask, intervalMs);
    });
    asked.end();
  }

  ask();
  return {
    get isReady() {
      return isReady;
    },
    ready,
    [Symbol.dispose]() {
      isDisposed = true;
      clearTimeout(timer);
    },
  };
}
