import type { PublishedBranding } from '../../platform/branding/branding.ts';
import type { ChangeListener } from '../../platform/store/change-subject.ts';
import type { RouteDefinition } from '../proxy/route.ts';
import type { RouteTable } from '../proxy/route-table.ts';
import type { CertificatesModel, GatewayRoute, NoticesModel } from './feed-events.ts';
import type { FeedReceiver, Snapshot } from './hub-link.ts';

/** What the clients of guarded routes may ask visitors for, by client id. */
export type AllowedScopes = (clientId: string) => readonly string[];

/**
 * Keeps a proxy table like that of the hub. A route that is the same stays the same object, and its connections go
 * on. After a snapshot everything may have changed.
 */
export function createRouteMirror(deps: {
  readonly routes: RouteTable;
  readonly tellChange: ChangeListener;
  readonly retire: () => void;
  readonly onNotices: (notices: NoticesModel) => void;
  readonly onCertificates: (
    certificates: CertificatesModel,
    revocationLists: readonly string[] | undefined,
  ) => void;
  readonly onSnapshot: (snapshot: Snapshot) => void;
  readonly followBranding: (branding: PublishedBranding) => void;
}): FeedReceiver & { readonly allowedScopes: AllowedScopes } {
  const { routes } = deps;
  const mirrored = new Map<string, GatewayRoute>();
  const scopesByClient = new Map<string, readonly string[]>();

  function put(model: GatewayRoute): void {
    const { client_id } = model;
    const key = keyOf(model);
    const former = mirrored.get(key);
    mirrored.set(key, model);
    if (client_id !== undefined) scopesByClient.set(client_id, model.allowed_scopes);
    if (former !== undefined && definitionText(former) === definitionText(model)) {
      routes.setReady(key, model.ready);
    } else routes.replace(definitionOf(model));
  }

  function remove(key: string): void {
    const former = mirrored.get(key);
    if (former === undefined) return;
    mirrored.delete(key);
    if (former.client_id !== undefined) scopesByClient.delete(former.client_id);
    routes.remove(key);
  }

  return {
    allowedScopes: (clientId) => scopesByClient.get(clientId) ?? [],

    snapshot(snapshot) {
      const keys = new Set(snapshot.routes.map(keyOf));
      for (const key of [...mirrored.keys()]) if (!keys.has(key)) remove(key);
      for (const model of snapshot.routes) put(model);
      deps.tellChange({ kind: 'all' });
      deps.followBranding(snapshot.branding as PublishedBranding);
      deps.onNotices(snapshot.notices);
      deps.onCertificates(snapshot.certificates ?? [], snapshot.revocation_lists);
      deps.onSnapshot(snapshot);
    },

    news(news) {
      switch (news.kind) {
        case 'route':
          put(news.route);
          break;
        case 'route_removed':
          remove(news.prefix);
          break;
        case 'change':
          deps.tellChange(news.subject);
          break;
        case 'look':
          deps.followBranding(news.branding as PublishedBranding);
          break;
        case 'notices':
          deps.onNotices(news.notices);
          break;
        case 'certificates':
          deps.onCertificates(news.certificates, news.revocation_lists);
          break;
        case 'retire':
          deps.retire();
      }
    },
  };
}

/** As `Route.key`. */
function keyOf({ host = '', prefix }: GatewayRoute): string {
  return host + prefix;
}

/** Everything but what changes without a new route. */
function definitionText({ ready: _, allowed_scopes: __, ...rest }: GatewayRoute): string {
  return JSON.stringify(rest);
}

function definitionOf(model: GatewayRoute): RouteDefinition {
  return {
    prefix: model.prefix,
    host: model.host,
    origin: model.origin,
    stripsPrefix: model.strip_prefix,
    isBehindProxy: model.behind_proxy,
    forwarding: model.forwarding,
    rules: model.rules,
    limits: model.limits,
    target: model.target,
    access: model.access,
    owner: model.owner,
    serverId: model.server_id,
    clientId: model.client_id,
    upstreamTimeoutMs: model.upstream_timeout_ms,
    isReady: model.ready,
  };
}
