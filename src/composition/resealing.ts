import { signingKeyContext } from '../identity/oauth/keys/signing-key-store.ts';
import { authStateContext } from '../identity/users/identity-store.ts';
import { totpSecretContext } from '../identity/users/second-factor-store.ts';
import { createPeriodic, type Periodic } from '../platform/concurrency/periodic.ts';
import { type SealedColumn, sealColumnsAgain } from '../platform/store/sealed-columns.ts';
import { serviceContext } from '../workloads/services/runtime-service-store.ts';
import type { Foundation } from './foundation.ts';

const service = { table: 'runtime_services', id: 'name', purpose: 'service-environment' };
const setting = { table: 'settings', id: 'key', column: 'value', contextOf: (key: string) => key };

/** What the database keeps sealed for longer than a login. */
export const sealedColumns: readonly SealedColumn[] = [
  {
    table: 'second_factors',
    id: 'user_id',
    column: 'totp_secret_encrypted',
    purpose: 'second-factor',
    contextOf: totpSecretContext,
  },
  {
    table: 'auth_states',
    id: 'identity_id',
    column: 'encrypted',
    purpose: 'auth-state',
    contextOf: authStateContext,
  },
  {
    table: 'signing_keys',
    id: 'id',
    column: 'sealed',
    purpose: 'signing-key',
    contextOf: signingKeyContext,
  },
  ...(['environment', 'headers'] as const).map((part) => ({
    ...service,
    column: `${part}_encrypted`,
    contextOf: (name: string) => serviceContext(name, part),
  })),
  { ...setting, purpose: 'plugin-settings', prefix: 'authenticator:' },
  { ...setting, purpose: 'acme', prefix: 'acme:' },
  { ...setting, purpose: 'internal_ssl', prefix: 'internal_ssl:' },
];

const checkIntervalMs = 60_000;

/**
 * Seals again what former keys of `Hub.cookie_secret` have sealed, once, so that these can be left out. Waits until all
 * instances have the same settings: one without the new key could open nothing any more.
 */
export function startResealing({
  database,
  instanceStore,
  secrets,
  log,
}: Pick<Foundation, 'database' | 'instanceStore' | 'secrets' | 'log'>): Periodic {
  let isDone = secrets.length < 2;
  return createPeriodic({
    intervalMs: checkIntervalMs,
    async work() {
      if (isDone) return;
      const live = (await instanceStore.list()).filter(({ isLive }) => isLive);
      if (new Set(live.map(({ settingsDigest }) => settingsDigest)).size > 1) return;
      const values = await sealColumnsAgain(database, { columns: sealedColumns, secrets });
      isDone = true;
      log.info({ values }, 'all stored secrets are encrypted with the first cookie_secret');
    },
    onError: (error) => log.warn({ err: error }, 'could not encrypt stored secrets again'),
  });
}
