import { createFailureLimit, type FailureWindow } from '../identity/oauth/clients/failure-limit.ts';
import type { Authorizer } from '../identity/rbac/authorizer.ts';
import { createSharePresenter } from '../operations/share-models.ts';
import { createSharing } from '../workloads/sharing/sharing.ts';
import type { ComposedAccounts } from './compose-accounts.ts';
import type { Foundation } from './foundation.ts';
import type { Working } from './servers.ts';
import type { Site } from './site.ts';

/** Sharing of users' servers. */
export type ComposedSharing = ReturnType<typeof composeSharing>;

export function composeSharing(
  { stores, keyv, database }: Foundation,
  deps: {
    readonly authorizer: Authorizer;
    readonly site: Site;
    readonly servers: Pick<Working, 'servers'>;
    readonly accounts: Pick<ComposedAccounts, 'acting'>;
  },
) {
  const { site } = deps;
  return {
    sharing: createSharing({
      ...stores,
      servers: stores.serverStore,
      authorizer: deps.authorizer,
      acting: deps.accounts.acting,
      failures: createFailureLimit({
        counts: keyv.space<FailureWindow>('share-code-failures'),
        now: database.now,
      }),
      now: database.now,
    }),
    presentShares: createSharePresenter({
      prefixOf: deps.servers.servers.prefixOf,
      origins: site.origins,
      acceptUrl: site.urls.acceptShare,
    }),
  };
}
