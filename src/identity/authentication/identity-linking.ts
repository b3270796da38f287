import type { AuthenticatorConfig } from '../../platform/config/config.ts';
import { HubError } from '../../platform/errors.ts';
import type { AuthenticatedUser, AuthenticationResult } from '../../plugin/host/authenticator.ts';
import type { IdentityStore } from '../users/identity-store.ts';
import type { User } from '../users/user-store.ts';
import { createAdmissionRules } from './admission-rules.ts';
import { canonicalUserName } from './user-name-rules.ts';

export type LinkResult =
  | { readonly outcome: 'linked'; readonly display: string }
  | { readonly outcome: 'refused'; readonly message: string };

/** Links an account at a provider to a user who is logged in another way. */
export type LinkIdentity = (
  user: User,
  result: AuthenticationResult,
  authenticatorName: string,
) => Promise<LinkResult>;

/** What may not log in may not be linked either. */
export function createIdentityLinking(deps: {
  readonly config: AuthenticatorConfig;
  readonly identities: Pick<IdentityStore, 'link' | 'setAuthState'>;
}): LinkIdentity {
  const { identities } = deps;
  const rules = createAdmissionRules(deps.config);

  async function link(user: User, authenticated: AuthenticatedUser, authenticator: string) {
    const { name, issuer, subject, display = name } = authenticated;
    const identity = await identities.link({
      userId: user.id,
      authenticator,
      issuer: issuer ?? authenticator,
      subject: subject ?? canonicalUserName(name),
      display,
    });
    await identities.setAuthState(identity.id, authenticated.authState, new Date());
    return { outcome: 'linked', display } as const;
  }

  return async (user, result, authenticatorName) => {
    if (result.outcome === 'refused') {
      return refused(result.message ?? 'The login provider did not confirm who you are.');
    }
    const { user: authenticated } = result;
    const isBlocked = rules.isBlocked(canonicalUserName(authenticated.name));
    if (authenticated.allowed === false || isBlocked) {
      return refused('This account may not log in here, so it cannot be linked.');
    }
    try {
      return await link(user, authenticated, authenticatorName);
    } catch (error) {
      if (!(error instanceof HubError && error.code === 'conflict')) throw error;
      return refused('This account belongs to another user here. Nothing was changed.');
    }
  };
}

function refused(message: string): LinkResult {
  return { outcome: 'refused', message };
}
