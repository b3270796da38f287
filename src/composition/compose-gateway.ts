import { createNotReadyRenderer } from '../entrances/pages/services/not-ready-renderer.ts';
import type { LoginRevalidation } from '../identity/authentication/login-revalidation.ts';
import type { Authorizer } from '../identity/rbac/authorizer.ts';
import type { LoginSessions } from '../identity/sessions/login-sessions.ts';
import { createChangeAwareCache, watchChanges } from '../platform/store/change-aware-cache.ts';
import { createExchangeGuardCode } from '../traffic/gateway/direct-hub-api.ts';
import { createHopForwarder } from '../traffic/gateway/hop-forwarder.ts';
import { createFindVisitor } from '../traffic/gateway/login-access.ts';
import { createRouteAccess } from '../traffic/gateway/route-access.ts';
import { assembleGateway, type GatewayBackend } from './assemble-gateway.ts';
import type { Foundation } from './foundation.ts';
import type { Identity } from './identity.ts';
import type { Working } from './servers.ts';
import type { Site } from './site.ts';

const cachedUserIds = 10_000;

/** The gateway within the hub, and what gateway processes ask it for. */
export type ComposedGateway = ReturnType<typeof composeGateway>;

export function composeGateway(
  { config, gatewaySecrets, database, stores, metrics, log, disposables }: Foundation,
  deps: {
    readonly site: Site;
    readonly oauth: Identity;
    readonly authorizer: Authorizer;
    readonly logins: LoginSessions;
    readonly services: Identity;
    readonly instances: Identity;
    readonly servers: Pick<Working, 'activityLog'>;
    readonly revalidation: Pick<LoginRevalidation, 'hasCurrentLogin' | 'revalidate'>;
  },
) {
  const { site, oauth, authorizer, logins, revalidation } = deps;
  const { routes, registry } = deps.services;
  const access = createRouteAccess({
    tokens: oauth.tokenVerifier,
    authorizer,
    revalidation,
    activity: deps.servers.activityLog,
  });
  const userIds = createChangeAwareCache<string>({
    changes: watchChanges(database),
    max: cachedUserIds,
  });
  const backend: GatewayBackend = {
    routes,
    changes: database,
    access,
    findVisitor: createFindVisitor({ logins, revalidation, authorizer }),
    userOfSession: async (sessionId) => (await logins.find(sessionId))?.user.name,
    onSessionEnd: logins.onEnd,
    groupNamesOf: authorizer.groupNamesOf,
    async infoOf(userName) {
      const userId = await userIds.getOrLoad(
        userName,
        async () => (await stores.users.findByName(userName))?.id,
      );
      if (userId === undefined) return {};
      const { displayName, email, isEmailVerified } = await stores.userInfo.of(userId);
      return { displayName, verifiedEmail: isEmailVerified ? email : undefined };
    },
    exchangeCode: createExchangeGuardCode(oauth),
    allowedScopes: oauth.clients.allowedScopes,
  };
  const assembled = assembleGateway({
    config,
    site,
    secrets: gatewaySecrets,
    backend,
    count: metrics.countForwarded,
    ways: {
      renderNotReadyPage: createNotReadyRenderer(site, registry),
    },
    createHops: (parts) =>
      createHopForwarder({
        ...parts,
        proof: deps.instances.hopProof,
        findInstance: deps.instances.directory.addressOf,
      }),
    log,
    disposables,
  });
  return { ...assembled, access, backend };
}
