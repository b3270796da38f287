import { HubError } from '../../platform/errors.ts';
import { type Phrase, text } from '../../platform/texts/text.ts';
import { type Authenticators, accountOwnerOf } from '../authentication/create-authenticators.ts';
import { loginLabels } from '../authentication/login-labels.ts';
import type { LoginSessions } from '../sessions/login-sessions.ts';
import type { Identity, IdentityStore } from '../users/identity-store.ts';
import type { PasswordCredentialStore } from '../users/password-credential-store.ts';
import type { User } from '../users/user-store.ts';

/** The accounts elsewhere by which a person can log in. */
export interface IdentityLinks {
  /** Identities of configured authenticators, and whether each may go. */
  listOf(
    user: Pick<User, 'id' | 'name'>,
  ): Promise<readonly (Identity & { readonly label: Phrase; readonly mayUnlink: boolean })[]>;
  /**
   * Ends a link, and the logins made by it but for one that goes on. Throws `not_found`, and
   * `conflict` for the last login method.
   */
  unlink(
    user: Pick<User, 'id' | 'name'>,
    identityId: string,
    options: { readonly keepSessionId: string },
  ): Promise<void>;
}

export function createIdentityLinks(deps: {
  readonly identities: Pick<IdentityStore, 'listForUser' | 'unlink'>;
  readonly authenticators: Pick<Authenticators, 'list' | 'find'>;
  readonly credentials: Pick<PasswordCredentialStore, 'findPasswordHash'>;
  readonly logins: Pick<LoginSessions, 'listOfUser' | 'end'>;
}): IdentityLinks {
  const { identities, authenticators, credentials, logins } = deps;

  const listOf: IdentityLinks['listOf'] = async (user) => {
    const hasPassword =
      accountOwnerOf(authenticators) !== undefined &&
      (await credentials.findPasswordHash(user.name)) !== undefined;
    const linked = (await identities.listForUser(user.id)).flatMap((identity) => {
      const via = authenticators.find(identity.authenticator)?.authenticator;
      // The hub's own account is not a link: its password is what lets the user in.
      if (via === undefined || via.ownsAccounts === true) return [];
      return [{ ...identity, label: loginLabels(via.login.label) }];
    });
    const mayUnlink = hasPassword || linked.length > 1;
    return linked.map((identity) => ({ ...identity, mayUnlink }));
  };

  return {
    listOf,

    async unlink(user, identityId, { keepSessionId }) {
      const link = (await listOf(user)).find(({ id }) => id === identityId);
      if (link === undefined) throw noSuchLink();
      const sessions = await logins.listOfUser(user.id);
      const outcome = await identities.unlink(user.id, identityId, {
        authenticators: authenticators.list
          .filter(({ authenticator }) => authenticator.ownsAccounts !== true)
          .map(({ name }) => name),
        hasPasswords: accountOwnerOf(authenticators) !== undefined,
      });
      if (outcome === 'unknown') throw noSuchLink();
      if (outcome === 'last') {
        throw new HubError('conflict', text`This is your only login method.`, {
          hint: text`Link another one or choose a password first.`,
        });
      }
      for (const session of sessions) {
        if (session.identityId !== identityId || session.sessionId === keepSessionId) continue;
        await logins.end(session.sessionId);
      }
    },
  };
}

function noSuchLink(): HubError {
  return new HubError('not_found', text`There is no such link.`);
}
