import { HubError } from '../../platform/errors.ts';
import type { AuditTrail } from '../../platform/store/audit-trail.ts';
import { text } from '../../platform/texts/text.ts';
import type { Caller } from '../rbac/access-check.ts';
import type { IdentityStore } from '../users/identity-store.ts';
import type { User } from '../users/user-store.ts';
import type { ActingOnUsers } from './acting-on-users.ts';

type State = Readonly<Record<string, unknown>>;

/** What login providers told of users, secrets among it, for callers of the API. */
export interface AuthStates {
  /**
   * What the provider that confirmed the user last has told; null when nothing is kept. Undefined when the
   * user may do more than the caller.
   */
  read(caller: Caller, user: User): Promise<State | null | undefined>;
  /**
   * Replaces what `read` tells. Throws `forbidden` as for taking the account over, `bad_request` when the
   * configuration keeps nothing, and `conflict` for a user whom no provider knows.
   */
  replace(caller: Caller, user: User, state: State | null): Promise<void>;
}

export function createAuthStates(deps: {
  readonly identities: Pick<IdentityStore, 'findLatestAuthState' | 'setAuthState'>;
  readonly acting: Pick<ActingOnUsers, 'requireMayActOn' | 'requireMayTakeOver'>;
  /** `Authenticator.enable_auth_state`. */
  readonly keepsAuthState: boolean;
  readonly audit: Pick<AuditTrail, 'recordAlone'>;
}): AuthStates {
  const { identities, acting, keepsAuthState } = deps;

  return {
    async read(caller, user) {
      try {
        await acting.requireMayActOn(caller, user, ['admin:auth_state']);
      } catch (error) {
        if (error instanceof HubError && error.code === 'forbidden') return undefined;
        throw error;
      }
      if (!keepsAuthState) return null;
      return (await identities.findLatestAuthState(user.id))?.state ?? null;
    },

    async replace(caller, user, state) {
      await acting.requireMayTakeOver(caller, user);
      if (!keepsAuthState) {
        throw new HubError('bad_request', text`This hub keeps no auth_state.`, {
          hint: text`Set Authenticator.enable_auth_state to true.`,
        });
      }
      const latest = await identities.findLatestAuthState(user.id);
      if (latest === undefined) {
        throw new HubError(
          'conflict',
          text`There is no login of this user to keep an auth_state for.`,
          {
            hint: text`The user has to log in by an external provider first.`,
          },
        );
      }
      await identities.setAuthState(latest.identityId, state ?? undefined, latest.refreshedAt);
      const target = { kind: 'user', name: user.name } as const;
      await deps.audit.recordAlone({ action: 'auth_state.change', target });
    },
  };
}
