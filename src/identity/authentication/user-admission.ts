import { HubError } from '../../platform/errors.ts';
import type { AuthenticatedUser, CredentialStore } from '../../plugin/host/authenticator.ts';
import type { Identity, IdentityStore } from '../users/identity-store.ts';
import type { User, UserStore } from '../users/user-store.ts';
import type { AccountBinding } from './account-binding.ts';
import type { AccountStore } from './account-store.ts';
import type { AdmissionRules } from './admission-rules.ts';
import type { NamedAuthenticator } from './create-authenticators.ts';
import type { ProfileSync } from './profile-sync.ts';
import { canonicalUserName, type UserNameRules } from './user-name-rules.ts';

export type AdmissionResult =
  | { readonly outcome: 'admitted'; readonly user: User; readonly identityId: string }
  | {
      readonly outcome: 'refused';
      readonly reason:
        | 'invalid_name'
        | 'blocked'
        | 'suspended'
        | 'not_allowed'
        | 'other_identity'
        | 'no_account';
      /** Canonical name, for the log. */
      readonly userName: string;
    };

/** Turns a person whom an authenticator has authenticated into a user of the hub, or refuses them. */
export type AdmitUser = (
  authenticated: AuthenticatedUser,
  via: NamedAuthenticator,
) => Promise<AdmissionResult>;

interface Candidate {
  /** Name by which the allow rules judge. */
  readonly name: string;
  readonly user: User | undefined;
  readonly identity: Identity | undefined;
}

export function createUserAdmission(deps: {
  readonly names: UserNameRules;
  readonly rules: AdmissionRules;
  readonly binding: Pick<AccountBinding, 'isFor' | 'isNamed'>;
  readonly profiles: ProfileSync;
  readonly users: Pick<UserStore, 'findById' | 'findByName'>;
  readonly identities: IdentityStore;
  readonly accounts: AccountStore;
  readonly credentials: Pick<CredentialStore, 'findPasswordHash'>;
  /** Whether what the provider returned is kept, encrypted (`enable_auth_state`). */
  readonly keepsAuthState: boolean;
}): AdmitUser {
  const { names, rules, binding, profiles, users, identities, accounts, credentials } = deps;

  async function findCandidate(
    authenticated: AuthenticatedUser,
    { name: authenticator, authenticator: { ownsAccounts = false } }: NamedAuthenticator,
  ): Promise<Candidate> {
    const name = names.resolve(authenticated.name);
    if (ownsAccounts) {
      // The account itself is the identity: it follows a renamed user, and its name stays free.
      const user = await users.findByName(name);
      return { name, user, identity: undefined };
    }
    const identity = await identities.find(keyOf(authenticated, authenticator));
    const known = identity && (await users.findById(identity.userId));
    if (known !== undefined) return { name: known.name, user: known, identity };
    return { name, user: await users.findByName(name), identity: undefined };
  }

  /**
   * Whether the user's name is taken. A person who can choose a name at one provider must not get into
   * the account that another person has through another provider.
   */
  async function belongsToOther(user: User): Promise<boolean> {
    const [linked, credential] = await Promise.all([
      identities.listForUser(user.id),
      credentials.findPasswordHash(user.name),
    ]);
    return linked.length > 0 || credential !== undefined;
  }

  async function admit(
    authenticated: AuthenticatedUser,
    via: NamedAuthenticator,
  ): Promise<AdmissionResult> {
    const ownsAccounts = via.authenticator.ownsAccounts === true;
    const { name, user, identity } = await findCandidate(authenticated, via);
    const refused = (
      reason: Extract<AdmissionResult, { outcome: 'refused' }>['reason'],
    ): AdmissionResult => ({ outcome: 'refused', reason, userName: name });

    if (names.problemOf(name) !== undefined) return refused('invalid_name');
    if (rules.isBlocked(names.resolve(authenticated.name))) return refused('blocked');
    if (user?.isSuspended === true) return refused('suspended');
    const hasName = ownsAccounts || identity !== undefined || binding.isFor(user, via.name);
    const admission = rules.decide({
      name,
      authenticated,
      hasOwnAccount: ownsAccounts && user !== undefined,
      hasName,
      isInvited: user?.isInvited === true,
    });
    if (admission !== 'admitted') return refused(admission);

    if (user === undefined) {
      if (ownsAccounts) return refused('no_account');
      // The next start would make it an account with the rights of that name.
      if (!hasName && binding.isNamed(name)) return refused('other_identity');
      const created = await accounts.create({
        name,
        isAdmin: authenticated.admin === true || rules.isConfiguredAdmin(name),
        identity: identityOf(authenticated, keyOf(authenticated, via.name)),
      });
      return await finish(created.user, created.identityId, authenticated, via);
    }
    const isKnown = identity !== undefined || ownsAccounts;
    if (!isKnown && (!hasName || (await belongsToOther(user)))) return refused('other_identity');
    const key = ownsAccounts
      ? { authenticator: via.name, issuer: via.name, subject: user.id }
      : keyOf(authenticated, via.name);
    const linked = await identities.link({ ...identityOf(authenticated, key), userId: user.id });
    return await finish(user, linked.id, authenticated, via);
  }

  async function finish(
    user: User,
    identityId: string,
    authenticated: AuthenticatedUser,
    via: NamedAuthenticator,
  ): Promise<AdmissionResult> {
    const isRefreshable = via.authenticator.refreshUser !== undefined;
    if (isRefreshable || deps.keepsAuthState) {
      await identities.setAuthState(identityId, authenticated.authState, new Date());
    } else {
      await identities.deleteAuthState(identityId);
    }
    const synced = await profiles.apply(user, authenticated, via.name);
    return { outcome: 'admitted', user: synced, identityId };
  }

  return async (authenticated, via) => {
    try {
      return await admit(authenticated, via);
    } catch (error) {
      // Two first logins of one person at once: the second finds what the first one made.
      if (!(error instanceof HubError && error.code === 'conflict')) throw error;
      return await admit(authenticated, via);
    }
  };
}

/** The identity of a person at an authenticator: by issuer and subject, never by name alone. */
function keyOf(authenticated: AuthenticatedUser, authenticator: string) {
  return {
    authenticator,
    issuer: authenticated.issuer ?? authenticator,
    subject: authenticated.subject ?? canonicalUserName(authenticated.name),
  };
}

function identityOf<Key extends object>({ display }: AuthenticatedUser, key: Key) {
  return { ...key, ...(display !== undefined && { display }) };
}
