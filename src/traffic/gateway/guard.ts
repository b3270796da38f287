import { isForged } from '../../client/decision.ts';
import type { UserModel } from '../../client/hub-api.ts';
import { HubOAuth } from '../../client/hub-oauth.ts';
import type { ClientRegistry } from '../../identity/oauth/clients/client-registry.ts';
import type { AnswerCache } from '../../platform/concurrency/answer-cache.ts';
import type { Secret } from '../../platform/config/secret.ts';
import type { Origins } from '../../platform/http/origins.ts';
import { accessScopeFor } from '../../platform/protocol/client-id.ts';
import { identityHeaders } from '../../platform/protocol/identity-headers.ts';
import { type ChangeSource, watchChanges } from '../../platform/store/change-aware-cache.ts';
import type { Route } from '../proxy/route.ts';
import {
  type AccessPolicy,
  type Authorized,
  createCachedPasses,
  passKey,
} from './access-policy.ts';
import type { AssertionSigner } from './assertion.ts';
import { createDirectHubApi, type DisclosedUserInfo } from './direct-hub-api.ts';

interface RouteGuard {
  /** Where browsers reach the route. */
  readonly origin: string;
  readonly client: HubOAuth;
  /** By `passKey`. */
  readonly cached: AnswerCache<Authorized>;
}

/** The guard plays the OAuth client of each guarded route. */
export function createGuard(deps: {
  readonly secrets: readonly Secret[];
  readonly origins: Pick<Origins, 'of' | 'hasHostCookies'>;
  readonly publicUrl: URL;
  readonly issuer: string;
  readonly database: ChangeSource;
  readonly assertions: AssertionSigner;
  readonly hubApi: Omit<Parameters<typeof createDirectHubApi>[0], 'clientId' | 'target'>;
  readonly clients: Pick<ClientRegistry, 'allowedScopes'>;
}): AccessPolicy {
  const { origins, publicUrl, database, clients } = deps;
  const guards = new WeakMap<Route, RouteGuard>();
  const changes = watchChanges(database);

  function guardOf(route: Route): RouteGuard {
    let guard = guards.get(route);
    if (guard === undefined) {
      guard = {
        origin: route.origin ?? origins.of(route.owner),
        client: clientOf(route),
        cached: createCachedPasses(changes),
      };
      guards.set(route, guard);
    }
    return guard;
  }

  function clientOf({ owner, prefix, clientId, origin: ownOrigin }: Route): HubOAuth {
    if (owner.kind === 'extra' || clientId === undefined) {
      throw new TypeError(`the route ${prefix} has no OAuth client`);
    }
    const origin = ownOrigin ?? origins.of(owner);
    return new HubOAuth({
      // The gateway needs no token of its own: it asks the hub without HTTP.
      api_token: 'unused-by-the-gateway',
      cookie_secret: deps.secrets.map((secret) => secret.reveal()),
      cache_max_age: 0,
      hub_api: createDirectHubApi({ ...deps.hubApi, clientId, target: owner }),
      // On the hub's own origin a path is enough, and right by whatever name the browser knows the hub.
      hub_base_url: origin === publicUrl.origin ? publicUrl.pathname : publicUrl.href,
      public_url: origin,
      cookie_host_prefix: origins.hasHostCookies,
      issuer: deps.issuer,
      service_prefix: prefix,
      oauth_client_id: clientId,
      oauth_redirect_uri: `${ownOrigin ?? ''}${prefix}oauth_callback`,
      oauth_scopes: [accessScopeFor(owner)],
      environment: {},
    });
  }

  async function authorize(
    route: Route,
    user: UserModel,
    isHubCredential: boolean,
  ): Promise<Authorized> {
    const groups = user.groups ?? [];
    const scopes = user.scopes ?? [];
    const info = (user['user_info'] ?? {}) as DisclosedUserInfo;
    const assertion = await deps.assertions.assertion({
      userName: user.name,
      groups,
      scopes,
      info,
      audience: route.clientId ?? '',
    });
    return {
      kind: 'authorized',
      headers: [
        ...identityHeaders(
          { name: user.name, groups, scopes, ...info },
          route.forwarding?.identity_headers,
        ),
        'X-Hub-Assertion',
        assertion,
      ],
      userName: user.name,
      groups,
      sessionId: typeof user['session_id'] === 'string' ? user['session_id'] : undefined,
      accessTokenId: typeof user['token_id'] === 'string' ? user['token_id'] : undefined,
      clientId:
        isHubCredential && typeof user['client_id'] === 'string' ? user['client_id'] : undefined,
      expiresAtMs:
        typeof user['token_expires_at'] === 'number' ? user['token_expires_at'] : undefined,
      stripAuthorization: isHubCredential,
    };
  }

  return {
    known(route, request) {
      const guard = guards.get(route);
      if (guard === undefined) return undefined;
      const key = passKey(request);
      if (key === undefined) return undefined;
      const authorized = guard.cached.get(key);
      if (authorized === undefined) return undefined;
      if (!authorized.stripAuthorization && isForged(request, guard.origin)) return undefined;
      return guard.client.isCallback(request.url ?? '/') ? undefined : authorized;
    },

    async decide(route, request) {
      const guard = guardOf(route);
      const beginning = guard.cached.begin();
      // A reload may have changed them since the last request; a login asks for those in force.
      guard.client.request_scopes = clients.allowedScopes(guard.client.oauth_client_id);
      const decision = await guard.client.authenticate(request);
      if (decision.kind !== 'allowed') return decision;
      const authorized = await authorize(route, decision.user, decision.source !== 'cookie');
      const key = passKey(request);
      if (key !== undefined) guard.cached.put(key, authorized, beginning);
      return authorized;
    },
  };
}
