import type { Logger } from 'pino';
import { createPeriodic } from '../../../platform/concurrency/periodic.ts';
import type { AccessTokenStore } from './access-token-store.ts';

/** Remembers when tokens were used and writes it down now and then, off the path of requests. */
export interface UseRecorder extends AsyncDisposable {
  recordUse(accessTokenId: string): void;
  /** Writes what has gathered. A failure is logged; the times are for display only. */
  flush(): Promise<void>;
}

const maxPending = 100_000;

/** Writes at most once in an interval; disposing of it writes the rest. */
export function createUseRecorder({
  accessTokens,
  log,
  intervalMs = 60_000,
  now = Date.now,
}: {
  readonly accessTokens: Pick<AccessTokenStore, 'recordUse'>;
  readonly log: Logger;
  readonly intervalMs?: number;
  readonly now?: () => number;
}): UseRecorder {
  let pending = new Map<string, Date>();

  const flushing = createPeriodic({
    intervalMs,
    async work() {
      if (pending.size === 0) return;
      const recorded = pending;
      pending = new Map();
      await accessTokens.recordUse(recorded);
    },
    onError: (error) => log.warn({ err: error }, 'could not record when tokens were last used'),
  });

  return {
    recordUse(accessTokenId) {
      if (pending.size < maxPending || pending.has(accessTokenId)) {
        pending.set(accessTokenId, new Date(now()));
      }
    },
    flush: () => flushing.run(),
    async [Symbol.asyncDispose]() {
      await flushing[Symbol.asyncDispose]();
      await flushing.run();
    },
  };
}
