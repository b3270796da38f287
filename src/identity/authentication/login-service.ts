import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { AuditReason } from '../../platform/audit/reason-labels.ts';
import { createLimiter } from '../../platform/concurrency/limiter.ts';
import type { AuthenticatorConfig } from '../../platform/config/config.ts';
import { HubError } from '../../platform/errors.ts';
import type { AuditTrail } from '../../platform/store/audit-trail.ts';
import { type Phrase, text } from '../../platform/texts/text.ts';
import type {
  AuthenticatedUser,
  AuthenticationResult,
  CredentialStore,
  FormAuthenticator,
  LoginForm,
  LoginRequest,
} from '../../plugin/host/authenticator.ts';
import { isForm } from '../../plugin/host/login-kinds.ts';
import type { GroupStore } from '../users/group-store.ts';
import type { IdentityStore } from '../users/identity-store.ts';
import type { UserInfoStore } from '../users/user-info-store.ts';
import type { User, UserStore } from '../users/user-store.ts';
import type { AccountBinding } from './account-binding.ts';
import type { AccountStore } from './account-store.ts';
import { createAdmissionRules } from './admission-rules.ts';
import type { Authenticators, NamedAuthenticator } from './create-authenticators.ts';
import type { LoginThrottle } from './login-throttle.ts';
import { createProfileSync, type RoleAssigner } from './profile-sync.ts';
import { type AdmissionResult, createUserAdmission } from './user-admission.ts';
import { createUserNameRules } from './user-name-rules.ts';

export interface LoggedIn {
  readonly outcome: 'logged_in';
  readonly user: User;
  readonly identityId: string;
  /** Name of the authenticator in the configuration. */
  readonly authenticator: string;
  readonly mustChangePassword: boolean;
  /** Whether more than a password was asked for already. */
  readonly isMultiFactor?: boolean;
  /** How the user showed who they are (RFC 8176), as far as it is known. */
  readonly amr?: readonly string[];
  readonly upstreamSessionId?: string;
  readonly idToken?: string;
}

export interface LoginRefused {
  readonly outcome: 'refused';
  readonly status: 401 | 403 | 429;
  /** Fit for the page; says nothing about whether there is such a user. */
  readonly message: Phrase;
  readonly retryAfterSeconds?: number;
}

export type LoginResult = LoggedIn | LoginRefused;

/** No authenticator has an answer held back longer. */
const maxDelayMs = 60_000;

/** Lets users in. */
export interface LoginService {
  /** Checks a submitted login form. Throws `unavailable` when the provider cannot be asked. */
  attemptLogin(
    authenticatorName: string,
    form: LoginForm,
    request: LoginRequest,
    options?: {
      /** Id of the browser, when this user has logged in with it before: it has a budget of its own. */
      readonly knownBrowserFor?: (userName: string) => string | undefined;
    },
  ): Promise<LoginResult>;
  /** Lets a person in whom an authenticator has authenticated, or refuses them. */
  admitUser(authenticated: AuthenticatedUser, authenticatorName: string): Promise<LoginResult>;
  /** Puts what an external or header authenticator returned into a result, admitting the user. */
  concludeLogin(result: AuthenticationResult, authenticatorName: string): Promise<LoginResult>;
}

export function createLoginService(deps: {
  readonly config: AuthenticatorConfig;
  readonly authenticators: Pick<Authenticators, 'find'>;
  readonly users: UserStore;
  readonly groups: Pick<GroupStore, 'syncMembershipsOf'>;
  readonly userInfo: Pick<UserInfoStore, 'sync'>;
  readonly identities: IdentityStore;
  readonly accounts: AccountStore;
  readonly credentials: Pick<CredentialStore, 'findPasswordHash'>;
  readonly roles?: RoleAssigner;
  readonly binding: AccountBinding;
  readonly throttle: LoginThrottle;
  readonly audit: Pick<AuditTrail, 'recordBounded'>;
  readonly log: Logger;
}): LoginService {
  const { config, authenticators, throttle, log } = deps;
  const names = createUserNameRules(config);
  const rules = createAdmissionRules(config);
  const admit = createUserAdmission({
    ...deps,
    names,
    rules,
    profiles: createProfileSync({ ...deps, rules }),
    keepsAuthState: config.enable_auth_state,
  });
  // One address, however many names it tries, leaves room for a login from elsewhere.
  const checks = createLimiter(config.concurrent_logins, {
    limitPerKey: config.concurrent_logins - Math.floor(config.concurrent_logins / 4),
  });

  function getAuthenticator(name: string): NamedAuthenticator {
    const found = authenticators.find(name);
    if (found === undefined)
      throw new HubError('not_found', text`There is no login method of this name.`);
    return found;
  }

  /** A name that is no user's may be a password in the wrong field, and is not kept. */
  async function recordRefusal(
    userName: string | undefined,
    authenticator: string,
    reason: AuditReason,
  ): Promise<void> {
    const user = userName === undefined ? undefined : await deps.users.findByName(userName);
    deps.audit.recordBounded({
      action: 'login',
      ...(user !== undefined && { target: { kind: 'user', name: user.name } as const }),
      result: 'refused',
      detail: { authenticator, reason },
    });
  }

  async function admitUser(
    authenticated: AuthenticatedUser,
    authenticatorName: string,
  ): Promise<LoginResult> {
    const via = getAuthenticator(authenticatorName);
    const admission = await admit(authenticated, via);
    if (admission.outcome === 'refused') {
      const { reason, userName } = admission;
      log.info({ user: userName.slice(0, 100), authenticator: via.name, reason }, 'login refused');
      await recordRefusal(userName, via.name, reason);
      return { outcome: 'refused', status: 403, message: labelForRefusal[reason] };
    }
    const { user, identityId } = admission;
    const isMultiFactor = authenticated.isMultiFactor === true;
    log.info({ user: user.name, authenticator: via.name }, 'logged in');
    return {
      outcome: 'logged_in',
      user,
      identityId,
      authenticator: via.name,
      mustChangePassword: authenticated.mustChangePassword === true,
      isMultiFactor,
      amr: [
        ...(isForm(via.authenticator) && !isMultiFactor ? ['pwd'] : []),
        ...(isMultiFactor ? ['mfa'] : []),
      ],
      ...(authenticated.upstreamSessionId !== undefined && {
        upstreamSessionId: authenticated.upstreamSessionId,
      }),
      ...(authenticated.idToken !== undefined && { idToken: authenticated.idToken }),
    };
  }

  async function concludeLogin(
    result: AuthenticationResult,
    authenticatorName: string,
    userName?: string,
  ): Promise<LoginResult> {
    if (result.outcome === 'refused') {
      await recordRefusal(userName, authenticatorName, result.reason);
    }
    if (result.outcome === 'authenticated') return await admitUser(result.user, authenticatorName);
    if (result.reason === 'credentials') return wrongCredentials;
    const message = result.message ?? labelForReason[result.reason];
    return { outcome: 'refused', status: 403, message };
  }

  return {
    admitUser,
    concludeLogin,

    async attemptLogin(authenticatorName, form, request, { knownBrowserFor } = {}) {
      const { authenticator, name } = getAuthenticator(authenticatorName);
      if (!isForm(authenticator)) {
        throw new HubError('bad_request', text`This login method takes no form.`);
      }
      const userName = names.resolve(form.get('username') ?? '');
      if (userName === '') return wrongCredentials;

      const { address, signal } = request;
      const throttled = await throttle.attempt(
        { userName, address, signal, knownBrowser: knownBrowserFor?.(userName) },
        async (patience, sharingKey) => {
          const check = () => authenticate(authenticator, form, request);
          const result = await checks(check, patience, sharingKey);
          // It keeps no one else waiting.
          if (result.outcome === 'refused') await delay(result.delayMs, signal);
          return result;
        },
        (result) => {
          if (result.outcome === 'authenticated') return 'success';
          return result.reason === 'credentials' ? 'failure' : 'neutral';
        },
      );
      const logFields = { user: userName.slice(0, 100), authenticator: name, address };
      if (throttled.outcome === 'delayed') {
        const { retryAfterSeconds, isCrowded = false } = throttled;
        const reason = isCrowded ? 'crowded' : 'throttled';
        log.warn({ ...logFields, reason }, 'login delayed');
        await recordRefusal(userName, name, reason);
        const message = isCrowded
          ? text`Many users are logging in right now.`
          : text`Too many attempts.`;
        return { outcome: 'refused', status: 429, message, retryAfterSeconds };
      }
      if (throttled.result.outcome === 'refused') {
        log.info({ ...logFields, reason: throttled.result.reason }, 'login failed');
      }
      return await concludeLogin(throttled.result, name, userName);
    },
  };
}

async function authenticate(
  authenticator: FormAuthenticator,
  form: LoginForm,
  request: LoginRequest,
): Promise<AuthenticationResult> {
  try {
    const result: AuthenticationResult | undefined = await authenticator.authenticate(
      form,
      request,
    );
    return result ?? { outcome: 'refused', reason: 'provider' };
  } catch (error) {
    if (error instanceof HubError) throw error;
    throw new HubError('unavailable', text`Logging in is not possible just now.`, {
      cause: error,
      hint: text`Try again in a few minutes.`,
    });
  }
}

/** Ends early when no one waits for the answer any more; the attempt counts all the same. */
async function delay(delayMs = 0, signal?: AbortSignal): Promise<void> {
  if (delayMs > 0)
    await sleep(Math.min(delayMs, maxDelayMs), undefined, { signal }).catch(() => undefined);
}

const wrongCredentials: LoginRefused = {
  outcome: 'refused',
  status: 401,
  message: text`Incorrect username or password.`,
};

const labelForReason = {
  not_allowed: text`Your account isn’t allowed on this hub.`,
  provider: text`The login provider could not confirm who you are.`,
  cancelled: text`The login was cancelled.`,
  invalid_response: text`The login provider sent an answer that cannot be trusted. Try again.`,
} as const;

const labelForRefusal: Readonly<
  Record<Extract<AdmissionResult, { outcome: 'refused' }>['reason'], Phrase>
> = {
  invalid_name: text`Your user name cannot be used here. Ask an administrator to map it to another.`,
  blocked: text`This account is blocked.`,
  suspended: text`This account is suspended. Ask an administrator.`,
  not_allowed: text`Your account isn’t allowed on this hub. Ask an administrator to let you in.`,
  other_identity: text`An account of this name exists, and it logs in another way. Log in that way first and link this one, or ask an administrator.`,
  no_account: text`There is no account for you here. Ask an administrator to make one.`,
};
