import { oneLine } from '../unreachable.ts';
import type { Cluster } from './cluster.ts';
import { type ApiObject, watchResource } from './resource-watch.ts';

/** What Kubernetes tells of an object while a server starts, such as that an image is pulled. */
export interface PodEvent {
  readonly reason: string;
  readonly message: string;
  readonly isWarning: boolean;
}

interface WireEvent extends ApiObject {
  readonly type?: string;
  readonly reason?: string;
  readonly message?: string;
  readonly involvedObject?: {
    readonly kind?: string;
    readonly name?: string;
    readonly uid?: string;
  };
}

/** Events of pods that start, by one watch that lasts as long as some pod starts. */
export interface PodEvents {
  /** Begins to listen to a pod and the claims that it mounts; disposing of it ends that. */
  follow(
    pod: { readonly uid: string; readonly claims: readonly string[] },
    onEvent: () => void,
  ): PodEventLog;
}

export interface PodEventLog extends Disposable {
  /** The latest one last. */
  readonly events: readonly PodEvent[];
}

const maxEvents = 20;

interface Follower {
  readonly claims: ReadonlySet<string>;
  readonly events: PodEvent[];
  readonly onEvent: () => void;
}

export function createPodEvents(cluster: Cluster, namespace: () => Promise<string>): PodEvents {
  const followers = new Map<string, Set<Follower>>();
  const byClaim = new Map<string, Set<Follower>>();
  let watching: AbortController | undefined;

  function take({ involvedObject, type, reason = '', message = '' }: WireEvent): void {
    const { kind, uid = '', name = '' } = involvedObject ?? {};
    const meant = kind === 'PersistentVolumeClaim' ? byClaim.get(name) : followers.get(uid);
    for (const { events, onEvent } of meant ?? []) {
      events.push({ reason, message: oneLine(message), isWarning: type === 'Warning' });
      if (events.length > maxEvents) events.shift();
      onEvent();
    }
  }

  async function watch(signal: AbortSignal): Promise<void> {
    const path = `/api/v1/namespaces/${await namespace()}/events`;
    const handlers = {
      onList: (events: readonly WireEvent[]) => {
        for (const event of events) {
          // Claims live longer than pods: what is told of them from before is of another start.
          if (event.involvedObject?.kind === 'Pod') take(event);
        }
      },
      onChange: (event: WireEvent, isGone: boolean) => {
        if (!isGone) take(event);
      },
      // Starts go on without: the pods themselves tell what matters.
      onConnection: () => undefined,
    };
    await watchResource(cluster, { path }, { handlers, signal });
  }

  function begin(): void {
    if (watching !== undefined) return;
    const controller = new AbortController();
    watching = controller;
    watch(controller.signal).catch(() => undefined);
  }

  return {
    follow({ uid, claims }, onEvent) {
      const follower: Follower = { claims: new Set(claims), events: [], onEvent };
      add(followers, uid, follower);
      for (const claim of claims) add(byClaim, claim, follower);
      begin();
      return {
        events: follower.events,
        [Symbol.dispose]() {
          drop(followers, uid, follower);
          for (const claim of claims) drop(byClaim, claim, follower);
          if (followers.size > 0) return;
          watching?.abort();
          watching = undefined;
        },
      };
    },
  };
}

function add(index: Map<string, Set<Follower>>, key: string, follower: Follower): void {
  const set = index.get(key) ?? new Set();
  index.set(key, set.add(follower));
}

function drop(index: Map<string, Set<Follower>>, key: string, follower: Follower): void {
  const set = index.get(key);
  set?.delete(follower);
  if (set?.size === 0) index.delete(key);
}
