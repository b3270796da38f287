import { createPeriodic, type Periodic } from '../platform/concurrency/periodic.ts';
import type { Config } from '../platform/config/config.ts';
import { compactUse } from '../workloads/usage/ledger-store.ts';
import type { Foundation } from './foundation.ts';
import type { Stores } from './stores.ts';

/** Also how long a token may outlive the login that it belongs to, once that has expired. */
const purgeIntervalMs = 60_000;
const dayMs = 86_400_000;
/** How long use is known by the hour; then by the day. */
const hourlyUseDays = 90;

/**
 * Removes what has expired now and then, one process for all on the database. By itself it is refused already; the
 * tables would grow.
 */
export function startPurging(
  hub: Stores &
    Pick<Foundation, 'database' | 'signingKeys' | 'log'> & {
      readonly config: {
        readonly Hub: Pick<Config['Hub'], 'audit_retention_days' | 'audit_max_rows'>;
      };
    },
): Periodic {
  const { database, config, log } = hub;
  return createPeriodic({
    intervalMs: purgeIntervalMs,
    async work() {
      const now = new Date(database.now());
      await database.whileAlone('purge', async () => {
        const tokens = await hub.accessTokens.purgeExpired();
        const sessions = await hub.loginSessions.purgeExpired(now);
        await hub.invitationStore.deleteExpired(now);
        await hub.shareCodes.purgeExpired();
        await hub.signingKeys.maintain();
        await compactUse(database, new Date(now.getTime() - hourlyUseDays * dayMs));
        const { audit_retention_days: days, audit_max_rows: maxRows } = config.Hub;
        const before = new Date(days === 0 ? 0 : now.getTime() - days * dayMs);
        const audited = await hub.auditLog.purge({ before, maxRows });
        if (audited > 0) log.info({ rows: audited }, 'oldest audit rows removed');
        if (tokens + sessions > 0) log.debug({ tokens, sessions }, 'expired records removed');
      });
    },
    onError: (error) => log.warn({ err: error }, 'could not remove expired records'),
  });
}
