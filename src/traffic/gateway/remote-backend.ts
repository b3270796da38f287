import type { Caller } from '../../identity/rbac/access-check.ts';
import { hasGroupFilter } from '../../identity/rbac/access-check.ts';
import {
  createMembership,
  emptyMembership,
  type Membership,
} from '../../identity/rbac/membership.ts';
import type { ScopeSet } from '../../identity/rbac/scope.ts';
import { hashSecret } from '../../platform/crypto/hash.ts';
import { maxTokenLength } from '../../platform/protocol/token-parameter.ts';
import {
  type ChangeSource,
  createChangeAwareCache,
  watchChanges,
} from '../../platform/store/change-aware-cache.ts';
import type { DisclosedUserInfo, ExchangeGuardCode } from './direct-hub-api.ts';
import type { HubLink } from './hub-link.ts';
import type { LoggedInVisitor } from './login-access.ts';
import { createRouteAccess } from './route-access.ts';

const cached = 10_000;
/** After this time the hub is asked again, which is also when it notes activity and refreshes logins. */
const cachedMs = 30_000;
const refusedForMs = 5_000;

/** What the gateway asks the hub for, remembered until a change says otherwise. */
export function createRemoteBackend(deps: {
  readonly link: Pick<HubLink, 'ask'>;
  readonly changes: ChangeSource;
}) {
  const { link } = deps;
  const changes = watchChanges(deps.changes);
  const limits = { changes, max: cached, ttlMs: cachedMs };
  const withMisses = { ...limits, maxMisses: cached, missTtlMs: refusedForMs };
  const callers = () =>
    createChangeAwareCache<Caller>({
      ...withMisses,
      expiresAtMs: ({ accessToken }) => accessToken?.expiresAt?.getTime(),
      invalidatedBy: { endOf: ({ sessionId, accessToken }) => [sessionId, accessToken?.id] },
    });
  const byToken = callers();
  const byTokenId = callers();
  const bySession = createChangeAwareCache<LoggedInVisitor>({
    ...withMisses,
    expiresAtMs: ({ expiresAtMs }) => expiresAtMs,
    invalidatedBy: { endOf: ({ caller }) => [caller.sessionId] },
  });
  const sessionUsers = createChangeAwareCache<{ readonly id: string; readonly user: string }>({
    ...withMisses,
    invalidatedBy: { endOf: ({ id }) => [id] },
  });
  const groups = createChangeAwareCache<readonly string[], never>(limits);
  const infos = createChangeAwareCache<DisclosedUserInfo, never>(limits);
  const members = createChangeAwareCache<Membership, never>(limits);

  const access = createRouteAccess({
    tokens: {
      async verify(token) {
        if (token === '' || token.length > maxTokenLength) return undefined;
        return await byToken.getOrLoad(hashSecret(token), () =>
          link.ask('bearerOfToken', { token }),
        );
      },
      findBearer: (tokenId) =>
        byTokenId.getOrLoad(tokenId, () => link.ask('bearerOfTokenId', { tokenId })),
    },
    authorizer: { membershipFor },
    // Both are the hub's to do, each time it is asked.
    revalidation: { hasCurrentLogin: async () => true },
    activity: { noteUser: () => {} },
  });

  async function membershipFor(scopes: ScopeSet): Promise<Membership> {
    if (!hasGroupFilter(scopes)) return emptyMembership;
    const names = [...scopes].flatMap((scope) => scope.split('!group=')[1] ?? []);
    const wanted = [...new Set(names)].sort();
    return await members.getOrLoad(wanted.join('\n'), async () => {
      const members = await link.ask('membersOfGroups', { groups: wanted });
      return createMembership(
        new Map(Object.entries(members).map(([name, list]) => [name, new Set(list)])),
      );
    });
  }

  const exchangeCode: ExchangeGuardCode = (clientId, code) =>
    link.ask('exchangeCode', { clientId, ...code });

  return {
    access,
    exchangeCode,
    findVisitor: (sessionId: string) =>
      bySession.getOrLoad(sessionId, () => link.ask('visitor', { sessionId })),
    async userOfSession(sessionId: string): Promise<string | undefined> {
      const found = await sessionUsers.getOrLoad(sessionId, async () => {
        const user = await link.ask('userOfSession', { sessionId });
        return user === undefined ? undefined : { id: sessionId, user };
      });
      return found?.user;
    },
    infoOf: (user: string) => infos.getOrLoad(user, () => link.ask('infoOfUser', { user })),
    groupNamesOf: (user: string) =>
      groups.getOrLoad(user, () => link.ask('groupsOfUser', { user })),
  };
}
