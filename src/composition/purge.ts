import type { Logger } from 'pino';
import type { Stores } from './stores.ts';

const purgeIntervalMs = 3_600_000;

/** Removes what has expired now and then. It is refused without this; only the tables would grow. */
export function startPurging(stores: Stores, log: Logger): Disposable {
  async function purge(): Promise<void> {
    try {
      const now = new Date();
      const tokens = await stores.accessTokens.purgeExpired();
      const sessions = await stores.loginSessions.purgeExpired(now);
      await stores.invitations.deleteExpired(now);
      if (tokens + sessions > 0) log.debug({ tokens, sessions }, 'removed what had expired');
    } catch (error) {
      log.warn({ err: error }, 'could not remove what has expired');
    }
  }

  const timer = setInterval(() => void purge(), purgeIntervalMs);
  timer.unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}
