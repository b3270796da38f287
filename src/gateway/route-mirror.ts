import type { RouteDefinition } from '../proxy/route.ts';
import type { RouteTable } from '../proxy/route-table.ts';
import type { ChangeListener } from '../store/change-listeners.ts';
import { type GatewayRoute, rightsChange } from './feed-events.ts';
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
  readonly onSnapshot: (snapshot: Snapshot) => void;
}): FeedReceiver & { readonly allowedScopes: AllowedScopes } {
  const { routes } = deps;
  const mirrored = new Map<string, GatewayRoute>();
  const scopesByClient = new Map<string, readonly string[]>();

  function put(model: GatewayRoute): void {
    const { prefix, client_id } = model;
    const former = mirrored.get(prefix);
    mirrored.set(prefix, model);
    if (client_id !== undefined) scopesByClient.set(client_id, model.allowed_scopes);
    if (former !== undefined && definitionText(former) === definitionText(model)) {
      routes.setReady(prefix, model.ready);
    } else routes.replace(definitionOf(model));
  }

  function remove(prefix: string): void {
    const former = mirrored.get(prefix);
    if (former === undefined) return;
    mirrored.delete(prefix);
    if (former.client_id !== undefined) scopesByClient.delete(former.client_id);
    routes.remove(prefix);
  }

  return {
    allowedScopes: (clientId) => scopesByClient.get(clientId) ?? [],

    snapshot(snapshot) {
      const prefixes = new Set(snapshot.routes.map(({ prefix }) => prefix));
      for (const prefix of [...mirrored.keys()]) if (!prefixes.has(prefix)) remove(prefix);
      for (const model of snapshot.routes) put(model);
      deps.tellChange(undefined);
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
          deps.tellChange(rightsChange.safeParse(news.subject).data);
          break;
        case 'retire':
          deps.retire();
      }
    },
  };
}

/** Everything but what changes without a new route. */
function definitionText({ ready: _, allowed_scopes: __, ...rest }: GatewayRoute): string {
  return JSON.stringify(rest);
}

function definitionOf(model: GatewayRoute): RouteDefinition {
  return {
    prefix: model.prefix,
    target: model.target,
    access: model.access,
    owner: model.owner,
    clientId: model.client_id,
    upstreamTimeoutMs: model.upstream_timeout_ms,
    isReady: model.ready,
  };
}
