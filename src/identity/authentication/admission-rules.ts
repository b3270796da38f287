import type { AuthenticatorConfig } from '../../platform/config/config.ts';
import type { AuthenticatedUser } from '../../plugin/host/authenticator.ts';
import { canonicalUserName } from './user-name-rules.ts';

/** A person who has proved who they are and asks to be let in. */
export interface Applicant {
  /** The user's name in the hub, or the one a new user would get. */
  readonly name: string;
  /** What the authenticator says of them. */
  readonly authenticated: Pick<AuthenticatedUser, 'allowed' | 'admin'>;
  /** Whether the account exists and the authenticator is the one that keeps such accounts. */
  readonly hasOwnAccount: boolean;
  /** Whether the name is theirs: rules that go by names count only then. */
  readonly hasName: boolean;
  /** Whether an administrator made the account. */
  readonly isInvited: boolean;
}

export type Admission = 'admitted' | 'blocked' | 'not_allowed';

/** The allow rules of `Authenticator`: who may log in, and who is an administrator. */
export interface AdmissionRules {
  /** No one is let in unless a rule says so; a block wins over every rule. */
  decide(applicant: Applicant): Admission;
  isBlocked(name: string): boolean;
  isConfiguredAdmin(name: string): boolean;
}

export function createAdmissionRules(
  config: Pick<
    AuthenticatorConfig,
    'allow_all' | 'allowed_users' | 'admin_users' | 'blocked_users'
  >,
): AdmissionRules {
  const allowed = new Set(config.allowed_users.map(canonicalUserName));
  const admins = new Set(config.admin_users.map(canonicalUserName));
  const blocked = new Set(config.blocked_users.map(canonicalUserName));

  return {
    decide({ name, authenticated, hasOwnAccount, hasName, isInvited }) {
      if (blocked.has(name)) return 'blocked';
      if (authenticated.allowed === false) return 'not_allowed';
      const isAllowed =
        config.allow_all ||
        authenticated.allowed === true ||
        authenticated.admin === true ||
        hasOwnAccount ||
        (hasName && (allowed.has(name) || admins.has(name) || isInvited));
      return isAllowed ? 'admitted' : 'not_allowed';
    },
    isBlocked: (name) => blocked.has(name),
    isConfiguredAdmin: (name) => admins.has(name),
  };
}
