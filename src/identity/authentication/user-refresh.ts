import { LRUCache } from 'lru-cache';
import type { Logger } from 'pino';
import { growingUpTo } from '../../platform/concurrency/answer-cache.ts';
import type { AuthenticatorConfig } from '../../platform/config/config.ts';
import { HubError } from '../../platform/errors.ts';
import {
  type ChangeSource,
  createChangeAwareCache,
  watchChanges,
} from '../../platform/store/change-aware-cache.ts';
import type { RunAlone } from '../../platform/store/keyv-space.ts';
import { text } from '../../platform/texts/text.ts';
import type { AuthenticatedUser, RefreshResult } from '../../plugin/host/authenticator.ts';
import type { Caller } from '../rbac/access-check.ts';
import type { Authorizer } from '../rbac/authorizer.ts';
import type { Login, LoginSessions } from '../sessions/login-sessions.ts';
import type { Identity, IdentityStore, StoredAuthState } from '../users/identity-store.ts';
import type { User } from '../users/user-store.ts';
import type { AdmissionRules } from './admission-rules.ts';
import type { Authenticators, NamedAuthenticator } from './create-authenticators.ts';
import type { ProfileSync } from './profile-sync.ts';

/** A login whose provider may be asked again. */
export interface RefreshableLogin {
  readonly user: User;
  readonly authenticator: string;
  /** Undefined for logins without an identity at a provider; those are never refreshed. */
  readonly identityId: string | undefined;
}

export type RefreshOutcome =
  | { readonly outcome: 'current' }
  /** The provider changed something about the user. */
  | { readonly outcome: 'updated'; readonly user: User }
  | { readonly outcome: 'login_required'; readonly message: string };

/** Asks providers, now and then, whether users are still who they were (`refresh_user`). */
export interface UserRefresh {
  /** Refreshes when `auth_refresh_age` has passed; requests at the same time share one call. */
  refreshIfDue(login: RefreshableLogin): Promise<RefreshOutcome>;
  /** Refreshes whatever the age, for `refresh_pre_spawn`. */
  refreshNow(login: RefreshableLogin): Promise<RefreshOutcome>;
}

/** How long a provider that did not answer is left alone. */
const maxPauseMs = 30_000;
export const providerTimeoutMs = 15_000;
const cachedIdentities = 50_000;

export function createUserRefresh(deps: {
  readonly config: Pick<AuthenticatorConfig, 'auth_refresh_age' | 'refresh_grace'>;
  readonly authenticators: Pick<Authenticators, 'list'>;
  readonly identities: Pick<
    IdentityStore,
    'findById' | 'findAuthState' | 'setAuthState' | 'setRefreshedAt'
  >;
  readonly rules: AdmissionRules;
  readonly profiles: ProfileSync;
  /** Among all processes: a provider that gives a refresh token once takes its second use for theft. */
  readonly runAlone: RunAlone;
  readonly log: Logger;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
  /** Milliseconds on a clock that is never set. */
  readonly monotonicMs?: () => number;
}): UserRefresh {
  const { config, identities, rules, log, now = Date.now } = deps;
  const { monotonicMs = () => performance.now() } = deps;
  const ageMs = config.auth_refresh_age * 1000;
  const graceMs = config.refresh_grace * 1000;
  const providers = new Map(
    deps.authenticators.list
      .filter(({ authenticator }) => authenticator.refreshUser !== undefined)
      .map((each) => [each.name, each]),
  );
  /** When each identity is due again (monotonic): most requests ask neither provider nor database. */
  const dueAt = new LRUCache<string, number>(growingUpTo(cachedIdentities));
  /** What a provider no longer confirms stays so until the next login: it is not asked again. */
  const ended = new LRUCache<string, { readonly refreshedAt: number; readonly message: string }>(
    growingUpTo(cachedIdentities),
  );
  const underWay = new Map<string, Promise<RefreshOutcome>>();

  function refreshableOf(login: RefreshableLogin): RefreshTarget | undefined {
    const { user, identityId, authenticator } = login;
    const via = providers.get(authenticator);
    return identityId === undefined || via === undefined ? undefined : { user, identityId, via };
  }

  function setDueIn(identityId: string, delayMs: number): void {
    dueAt.set(identityId, monotonicMs() + delayMs);
  }

  /** Twenty requests of one page load become one call of the provider. */
  function shared(
    target: RefreshTarget,
    work: () => Promise<RefreshOutcome>,
  ): Promise<RefreshOutcome> {
    const running = underWay.get(target.identityId);
    if (running !== undefined) return running;
    const started = work().finally(() => underWay.delete(target.identityId));
    underWay.set(target.identityId, started);
    return started;
  }

  async function refresh(target: RefreshTarget, isForced: boolean): Promise<RefreshOutcome> {
    const known = await judge(target, isForced);
    if ('outcome' in known) return known;
    return deps.runAlone(target.identityId, async () => {
      // What another process did meanwhile.
      const due = await judge(target, isForced);
      if ('outcome' in due) return due;
      const { identity, stored, refreshedAt } = due;
      if (!isForced && refreshedAt !== known.refreshedAt) {
        setDueIn(target.identityId, ageMs);
        return { outcome: 'current' };
      }
      const result = await askProvider(target, toAuthenticatedUser(target.user, identity, stored));
      const outcome = await settle(target, identity, result, refreshedAt);
      if (outcome.outcome === 'login_required') {
        dueAt.delete(target.identityId);
        ended.set(target.identityId, { refreshedAt, message: outcome.message });
      }
      return outcome;
    });
  }

  /** The outcome without the provider, or what it is to be asked about. */
  async function judge(
    target: RefreshTarget,
    isForced: boolean,
  ): Promise<RefreshOutcome | DueRefresh> {
    const { user, identityId } = target;
    const [identity, stored] = await Promise.all([
      identities.findById(identityId),
      identities.findAuthState(identityId),
    ]);
    if (identity === undefined || identity.userId !== user.id) {
      return loginRequired('This login is no longer linked to your account.');
    }
    const refreshedAt = stored?.refreshedAt.getTime() ?? 0;
    const end = ended.get(identityId);
    if (end?.refreshedAt === refreshedAt) return loginRequired(end.message);
    const sinceRefreshMs = now() - refreshedAt;
    // A time in the future is of a clock that was set back: it says nothing.
    if (!isForced && sinceRefreshMs >= 0 && sinceRefreshMs < ageMs) {
      // Another process has asked in the meantime.
      setDueIn(identityId, ageMs - sinceRefreshMs);
      return { outcome: 'current' };
    }
    return { identity, stored, refreshedAt };
  }

  async function askProvider(
    { via, user }: RefreshTarget,
    authenticated: AuthenticatedUser,
  ): Promise<RefreshResult> {
    // Not the signal of the request that happened to come first: others wait for the same answer.
    const signal = AbortSignal.timeout(providerTimeoutMs);
    try {
      const result = await via.authenticator.refreshUser?.(authenticated, { signal });
      return result ?? { outcome: 'unchanged' };
    } catch (error) {
      log.warn({ err: error, user: user.name, authenticator: via.name }, 'refresh_user failed');
      return { outcome: 'unavailable' };
    }
  }

  async function settle(
    { user, identityId, via }: RefreshTarget,
    identity: Identity,
    result: RefreshResult,
    refreshedAt: number,
  ): Promise<RefreshOutcome> {
    switch (result.outcome) {
      case 'unchanged':
        await identities.setRefreshedAt(identityId, new Date(now()));
        setDueIn(identityId, ageMs);
        return { outcome: 'current' };
      case 'updated': {
        if (!isSamePerson(result.user, identity)) {
          log.warn({ user: user.name }, 'provider refreshed another person');
          return loginRequired('The login provider no longer knows you as the same person.');
        }
        const admission = rules.decide({
          name: user.name,
          authenticated: result.user,
          hasOwnAccount: via.authenticator.ownsAccounts === true,
          hasName: true,
          isInvited: user.isInvited,
        });
        if (admission !== 'admitted') return loginRequired('You may no longer log in here.');
        await identities.setAuthState(identityId, result.user.authState, new Date(now()));
        setDueIn(identityId, ageMs);
        return {
          outcome: 'updated',
          user: await deps.profiles.apply(user, result.user, via.name),
        };
      }
      case 'login_required':
        return loginRequired(result.message ?? 'Your login has ended at the provider.');
      case 'unavailable': {
        const graceEndsAt = refreshedAt + ageMs + graceMs;
        if (now() >= graceEndsAt) {
          return loginRequired('The login provider could not be asked about you for too long.');
        }
        setDueIn(identityId, Math.min(ageMs, maxPauseMs, graceEndsAt - now()));
        return { outcome: 'current' };
      }
    }
  }

  function check(login: RefreshableLogin, isForced: boolean): Promise<RefreshOutcome> {
    if (rules.isBlocked(login.user.name)) {
      return Promise.resolve(loginRequired('This account is blocked.'));
    }
    const target = refreshableOf(login);
    const isDue =
      isForced || (ageMs > 0 && (dueAt.get(login.identityId ?? '') ?? 0) <= monotonicMs());
    if (target === undefined || !isDue) return Promise.resolve({ outcome: 'current' } as const);
    return shared(target, () => refresh(target, isForced));
  }

  return {
    refreshIfDue: (login) => check(login, false),
    refreshNow: (login) => check(login, true),
  };
}

interface DueRefresh {
  readonly identity: Identity;
  readonly stored: StoredAuthState | undefined;
  readonly refreshedAt: number;
}

interface RefreshTarget {
  readonly user: User;
  readonly identityId: string;
  readonly via: NamedAuthenticator;
}

/** Rebuilds what an authenticator said of a user at login, for its hooks. */
export function toAuthenticatedUser(
  user: User,
  identity: Identity,
  stored: StoredAuthState | undefined,
): AuthenticatedUser {
  return {
    name: user.name,
    issuer: identity.issuer,
    subject: identity.subject,
    ...(identity.display !== undefined && { display: identity.display }),
    ...(stored?.state !== undefined && { authState: stored.state }),
  };
}

/** Whether a refreshed identity is the one that logged in (OpenID Connect Core 1.0 §5.3.2). */
function isSamePerson(refreshed: AuthenticatedUser, identity: Identity): boolean {
  const hasIssuer = refreshed.issuer === undefined || refreshed.issuer === identity.issuer;
  const hasSubject = refreshed.subject === undefined || refreshed.subject === identity.subject;
  return hasIssuer && hasSubject;
}

function loginRequired(message: string): RefreshOutcome {
  return { outcome: 'login_required', message };
}

/** Checks logins with their provider while they are used: who is gone there is logged out here. */
export interface LoginRevalidation {
  /** The login as it is now, or undefined when it has ended at its provider. */
  revalidate(login: Login): Promise<Login | undefined>;
  /** Whether a caller with a token still has a login at a provider, or never needed one. */
  hasCurrentLogin(caller: Pick<Caller, 'user' | 'accessToken'>): Promise<boolean>;
  /** Asks the providers now. Throws `forbidden` when none of them knows the user any more. */
  requireCurrentLogin(user: User): Promise<void>;
}

const cachedUsers = 10_000;

export function createLoginRevalidation(deps: {
  readonly refresh: UserRefresh;
  readonly authenticators: Pick<Authenticators, 'list' | 'find'>;
  readonly logins: Pick<LoginSessions, 'find' | 'endAllOfIdentity' | 'end'>;
  readonly identities: Pick<IdentityStore, 'listForUser'>;
  readonly database: ChangeSource;
  readonly log: Logger;
}): LoginRevalidation {
  const { refresh, authenticators, logins, identities, log } = deps;
  const linked = createChangeAwareCache<readonly Identity[], never>({
    changes: watchChanges(deps.database),
    max: cachedUsers,
  });

  async function settle(
    outcome: RefreshOutcome,
    { user, identityId }: { readonly user: User; readonly identityId: string | undefined },
  ): Promise<boolean> {
    if (outcome.outcome !== 'login_required') return true;
    // They share what the provider gave: none of them could be confirmed any more.
    const ended = identityId === undefined ? 0 : await logins.endAllOfIdentity(identityId);
    if (ended > 0) {
      log.info({ user: user.name, ended, reason: outcome.message }, 'logins ended at provider');
    }
    return false;
  }

  async function revalidate(login: Login): Promise<Login | undefined> {
    const { session, user } = login;
    const { authenticator, identityId } = session;
    const outcome = await refresh.refreshIfDue({ user, authenticator, identityId });
    if (!(await settle(outcome, { user, identityId }))) {
      // A login without an identity, or one that was linked again in the meantime.
      await logins.end(session.sessionId);
      return undefined;
    }
    return outcome.outcome === 'updated' ? { session, user: outcome.user } : login;
  }

  function canRefresh(): boolean {
    return authenticators.list.some(({ authenticator }) => authenticator.refreshUser !== undefined);
  }

  async function anyIsCurrent(
    user: User,
    known: readonly Identity[],
    ask: UserRefresh['refreshIfDue'],
  ): Promise<boolean> {
    if (known.length === 0) return true;
    for (const { id: identityId, authenticator } of known) {
      const outcome = await ask({ user, authenticator, identityId });
      if (await settle(outcome, { user, identityId })) return true;
    }
    return false;
  }

  /** The identities whose authenticators are still configured. */
  async function identitiesOf({ id }: User): Promise<Identity[]> {
    const all = await linked.getOrLoad(id, () => identities.listForUser(id));
    return all.filter(({ authenticator }) => authenticators.find(authenticator) !== undefined);
  }

  return {
    revalidate,

    async hasCurrentLogin({ user, accessToken }) {
      // A server's own token speaks for the server: it reports activity while its user is away.
      if (user === undefined || accessToken?.server !== undefined) return true;
      const sessionId = accessToken?.sessionId;
      const login = sessionId === undefined ? undefined : await logins.find(sessionId);
      if (login !== undefined) return (await revalidate(login)) !== undefined;
      if (sessionId !== undefined || !canRefresh()) return true;
      return await anyIsCurrent(user, await identitiesOf(user), refresh.refreshIfDue);
    },

    async requireCurrentLogin(user) {
      if (await anyIsCurrent(user, await identitiesOf(user), refresh.refreshNow)) return;
      throw new HubError('forbidden', text`Your login has ended at the login provider.`, {
        hint: text`Log in again, then try once more.`,
      });
    },
  };
}

/** A caller who is logged in with a browser. */
export interface LoginCaller extends Caller {
  readonly user: User;
  readonly sessionId: string;
}

/** The user of a login as a caller, with everything the user may do now. */
export async function callerOfLogin(
  { user, session }: Login,
  authorizer: Pick<Authorizer, 'scopesOfOwner'>,
): Promise<LoginCaller> {
  const owner = { kind: 'user', name: user.name } as const;
  return {
    owner,
    user,
    scopes: await authorizer.scopesOfOwner(owner),
    sessionId: session.sessionId,
  };
}
