import type { Logger } from 'pino';
import { createPeriodic } from '../../platform/concurrency/periodic.ts';
import { concernsRights } from '../../platform/store/change-subject.ts';
import type { HubDatabase } from '../../platform/store/database.ts';

/** Ends answers that go on, such as event streams, when their caller may have them no more. */
export interface LiveCallers extends Disposable {
  /**
   * Calls `onLost` once `isAllowed` says no, which is asked after every change that can take a right, and now and
   * then. Returns how to stop.
   */
  watch(isAllowed: () => Promise<boolean>, onLost: () => void): () => void;
}

/** How often all are asked though no change is known: a token may have expired. */
const sweepMs = 2_000;

/** Disposing of it ends all answers: the hub stops. */
export function createLiveCallers(deps: {
  readonly database: Pick<HubDatabase, 'onChange' | 'changeFeed'>;
  /** Calls when a login has ended here. */
  readonly onSessionEnd: (listener: () => void) => () => void;
  readonly log: Logger;
}): LiveCallers {
  const { database, log } = deps;
  interface Watched {
    readonly isAllowed: () => Promise<boolean>;
    readonly onLost: () => void;
  }
  const watched = new Set<Watched>();

  function end(each: Watched): void {
    if (watched.delete(each)) each.onLost();
  }

  async function check(each: Watched): Promise<void> {
    try {
      if (!(await each.isAllowed())) end(each);
    } catch (error) {
      // As long as what was known may be gone by, an answer goes on.
      log.debug({ err: error }, 'could not ask again whether a caller may continue');
      if (database.changeFeed.isLost()) end(each);
    }
  }

  const sweeping = createPeriodic({
    intervalMs: sweepMs,
    async work() {
      await Promise.all([...watched].map(check));
    },
    onError: (error) => log.error({ err: error }, 'could not ask which callers may continue'),
  });
  /** After a run under way, which may have asked before the change. */
  const sweep = () => void sweeping.run().then(() => sweeping.run());
  const stopListening = [
    database.onChange((subject) => {
      const { kind } = subject;
      const isEnd = kind === 'session_ended' || kind === 'tokens_revoked';
      if (watched.size > 0 && (isEnd || concernsRights(subject))) sweep();
    }),
    deps.onSessionEnd(() => watched.size > 0 && sweep()),
  ];

  return {
    watch(isAllowed, onLost) {
      const entry = { isAllowed, onLost };
      watched.add(entry);
      return () => void watched.delete(entry);
    },
    [Symbol.dispose]() {
      for (const stop of stopListening) stop();
      sweeping[Symbol.dispose]();
      for (const each of watched) end(each);
    },
  };
}
