import type { GatewayIdentity } from '../../cluster/instances/instance-figures.ts';
import type { Announcement, Maintenance } from '../../cluster/notices/notice-store.ts';
import type { LoginSessions } from '../../identity/sessions/login-sessions.ts';
import type { CurrentBranding } from '../../platform/branding/branding.ts';
import { HubError } from '../../platform/errors.ts';
import type { CertificateSource } from '../../platform/http/tls/certificate-source.ts';
import type { ChangeSource } from '../../platform/store/change-aware-cache.ts';
import { type ChangeSubject, concernsRights } from '../../platform/store/change-subject.ts';
import { text } from '../../platform/texts/text.ts';
import type { Route } from '../proxy/route.ts';
import type { RouteTable } from '../proxy/route-table.ts';
import {
  type CertificatesModel,
  type FeedEvent,
  type GatewayRoute,
  gatewayProtocol,
  heartbeatMs,
  type NoticesModel,
  rightsChange,
} from './feed-events.ts';

/** A gateway process that follows the feed. */
export interface FollowingGateway extends GatewayIdentity {
  /** Digest of the settings that it runs with; empty while it has none. */
  readonly settings: string;
}

/** What gateway processes are told: routes, and what has been revoked. */
export interface GatewayFeed extends Disposable {
  /** From now on gateways are told; before, and after `close`, the feed is refused. */
  open(): void;
  /** Ends the feeds of all gateways. */
  close(): void;
  /** Throws `unavailable` before `open` and after `close`. */
  requireOpen(): void;
  /** The events for one gateway, a snapshot first. Ends when the gateway does not keep up. */
  follow(
    gateway: FollowingGateway & { readonly nonce: string },
    signal: AbortSignal,
  ): AsyncIterable<FeedEvent>;
  /** The gateways that follow the feed now. */
  following(): readonly FollowingGateway[];
  /** Tells a gateway to take no more connections and to end when those it has are over. */
  retire(name: string): void;
  /** Tells the gateways how pages look now. */
  publishBranding(): void;
  readonly settingsDigest: string;
}

/** Events that may wait for one gateway: behind by more it is better off with a new snapshot. */
const maxWaiting = 10_000;

type WithoutNumber<Event> = Event extends unknown ? Omit<Event, 'number'> : never;
type News = WithoutNumber<FeedEvent>;

interface Follower {
  readonly gateway: FollowingGateway;
  tell(news: News): void;
  end(): void;
}

export function createGatewayFeed(deps: {
  readonly routes: Pick<RouteTable, 'list' | 'find' | 'onChange'>;
  readonly changes: ChangeSource;
  readonly onSessionEnd: LoginSessions['onEnd'];
  readonly allowedScopes: (clientId: string) => readonly string[];
  readonly notices: {
    everywhere(): {
      readonly announcement?: Pick<Announcement, 'text' | 'level' | 'until'> | undefined;
      readonly maintenance?: Pick<Maintenance, 'text' | 'since' | 'until'> | undefined;
    };
    onChange(listener: () => void): () => void;
  };
  readonly settings: object;
  readonly settingsDigest: string;
  readonly branding: CurrentBranding;
  readonly certificates?: CertificateSource | undefined;
}): GatewayFeed {
  const { routes, settings, settingsDigest } = deps;
  const followers = new Set<Follower>();
  /** As it was told last, by key. */
  const reported = new Map<string, string>();
  let isOpen = false;

  function modelOf(route: Route): GatewayRoute {
    const { clientId, serverId, upstreamTimeoutMs, host, origin, rules, forwarding, limits } =
      route;
    return {
      prefix: route.prefix,
      ...(host !== undefined && { host }),
      ...(origin !== undefined && { origin }),
      ...(route.stripsPrefix && { strip_prefix: true }),
      ...(route.isBehindProxy && { behind_proxy: true }),
      ...(forwarding !== undefined && { forwarding }),
      ...(rules.length > 0 && { rules: [...rules] }),
      ...(limits !== undefined && { limits }),
      target: route.target,
      access: route.access,
      owner: route.owner,
      ...(serverId !== undefined && { server_id: serverId }),
      ...(clientId !== undefined && { client_id: clientId }),
      ...(upstreamTimeoutMs !== undefined && { upstream_timeout_ms: upstreamTimeoutMs }),
      ready: route.isReady,
      allowed_scopes:
        route.access === 'gateway' && clientId !== undefined
          ? [...deps.allowedScopes(clientId)]
          : [],
    };
  }

  function tellAll(news: News): void {
    for (const follower of followers) follower.tell(news);
  }

  function tellRoute(key: string): void {
    const route = routes.find(key);
    if (route === undefined) {
      reported.delete(key);
      tellAll({ kind: 'route_removed', prefix: key });
      return;
    }
    const model = modelOf(route);
    const text = JSON.stringify(model);
    if (reported.get(key) === text) return;
    reported.set(key, text);
    for (const follower of followers) {
      if (isReachable(route, follower.gateway)) follower.tell({ kind: 'route', route: model });
      else follower.tell({ kind: 'route_removed', prefix: key });
    }
  }

  function onChange(subject: ChangeSubject): void {
    // A reload may have changed what the clients of routes may ask for.
    if (concernsRights(subject))
      for (const { key, access } of routes.list()) if (access === 'gateway') tellRoute(key);
    // Where things run, the routes tell.
    const reported = rightsChange.safeParse(subject).data;
    if (reported !== undefined) tellAll({ kind: 'change', subject: reported });
  }

  function noticesModel(): NoticesModel {
    const { announcement, maintenance } = deps.notices.everywhere();
    return {
      ...(announcement !== undefined && {
        announcement: { ...publishedNotice(announcement), level: announcement.level },
      }),
      ...(maintenance !== undefined && {
        maintenance: { ...publishedNotice(maintenance), since_ms: maintenance.since.getTime() },
      }),
    };
  }

  function certificatesModel(): CertificatesModel | undefined {
    return deps.certificates?.certificates().map(({ names, notAfter, ...rest }) => ({
      ...rest,
      names: [...names],
      notAfter: notAfter.toISOString(),
    }));
  }

  const listsModel = () => [...(deps.certificates?.revocationLists ?? [])];

  deps.certificates?.onChange(() =>
    tellAll({
      kind: 'certificates',
      certificates: certificatesModel() ?? [],
      revocation_lists: listsModel(),
    }),
  );
  using started = new DisposableStack();
  started.defer(routes.onChange(tellRoute));
  started.defer(deps.changes.onChange(onChange));
  started.defer(deps.onSessionEnd((sessionId) => onChange({ kind: 'session_ended', sessionId })));
  started.defer(deps.notices.onChange(() => tellAll({ kind: 'notices', notices: noticesModel() })));
  const beating = setInterval(
    () => tellAll({ kind: 'heartbeat', at_ms: deps.changes.now() }),
    heartbeatMs,
  );
  beating.unref();
  started.defer(() => clearInterval(beating));
  const owned = started.move();

  function close(): void {
    isOpen = false;
    for (const follower of followers) follower.end();
  }

  async function* eventsFor(
    { nonce, ...gateway }: FollowingGateway & { readonly nonce: string },
    signal: AbortSignal,
  ): AsyncGenerator<FeedEvent> {
    const waiting: News[] = [];
    let isEnded = false;
    let wake: (() => void) | undefined;
    const follower: Follower = {
      gateway,
      tell(news) {
        // While it takes none of them, one is enough.
        if (news.kind === 'heartbeat' && waiting.length > 0) return;
        if (waiting.length >= maxWaiting) isEnded = true;
        else waiting.push(news);
        wake?.();
      },
      end() {
        isEnded = true;
        wake?.();
      },
    };
    const end = () => follower.end();
    signal.addEventListener('abort', end, { once: true });
    followers.add(follower);
    let number = 1;
    try {
      yield {
        kind: 'snapshot',
        number,
        protocol: gatewayProtocol,
        nonce,
        settings,
        settings_digest: settingsDigest,
        branding: deps.branding.current,
        now_ms: deps.changes.now(),
        notices: noticesModel(),
        certificates: certificatesModel(),
        revocation_lists: listsModel(),
        routes: routes
          .list()
          .filter((route) => isReachable(route, gateway))
          .map(modelOf),
      };
      while (!isEnded) {
        const news = waiting.shift();
        if (news === undefined) {
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
          continue;
        }
        if (news.kind !== 'heartbeat') number += 1;
        yield { ...news, number } as FeedEvent;
      }
    } finally {
      followers.delete(follower);
      signal.removeEventListener('abort', end);
    }
  }

  return {
    settingsDigest,
    open() {
      isOpen = true;
    },
    close,

    requireOpen() {
      if (!isOpen) throw notReady();
    },
    follow: eventsFor,
    following: () => [...followers].map(({ gateway }) => gateway),
    retire(name) {
      for (const { gateway, tell } of followers)
        if (gateway.name === name) tell({ kind: 'retire' });
    },
    publishBranding: () => tellAll({ kind: 'look', branding: deps.branding.current }),
    [Symbol.dispose]() {
      close();
      owned[Symbol.dispose]();
    },
  };
}

function publishedNotice<Published>({
  text,
  until,
}: {
  readonly text: Published;
  readonly until?: Date | undefined;
}) {
  return { text, ...(until !== undefined && { until_ms: until.getTime() }) };
}

/** The loopback addresses and sockets of the hub's machine are others elsewhere: there the hub forwards. */
function isReachable({ upstream, via }: Route, { isLocal }: FollowingGateway): boolean {
  if (via !== undefined) return false;
  if (isLocal) return true;
  return (
    upstream.socketPath === undefined &&
    !/^(?:127\.|localhost$|\[?::1\]?$|0\.0\.0\.0$)/.test(upstream.hostname)
  );
}

/** The refusal while the hub starts or stops, so that gateways go on with what they have. */
function notReady(): HubError {
  return new HubError('unavailable', text`The hub is starting or stopping.`, {
    retryAfterSeconds: 1,
  });
}
