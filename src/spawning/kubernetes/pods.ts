import { setImmediate } from 'node:timers/promises';
import type { Phrase } from '../../platform/texts/text.ts';
import type { ServerExit } from '../../plugin/host/spawner.ts';
import { systemClock } from '../processes/clock.ts';
import { isMissing, sentenceOf } from './api-errors.ts';
import type { Cluster } from './cluster.ts';
import { hubLabels, selectorOf } from './hub-objects.ts';
import { exitOf, hasEnded, type PodView, podDeleted, viewOf, type WirePod } from './pod-view.ts';
import { type WatchConnection, watchResource } from './resource-watch.ts';

/** How a pod is, as far as the watch tells. */
export type PodCondition =
  | { readonly is: 'there'; readonly view: PodView }
  | { readonly is: 'gone'; readonly exit: ServerExit }
  | { readonly is: 'unknown'; readonly reason: Phrase };

/** The pods of this hub, by one watch for all of them. */
export interface Pods {
  /** Begins to watch, if it has not begun. */
  open(): void;
  /** Resolves once all pods are known. Rejects with `unavailable` when the API does not tell, or the signal's reason. */
  ready(signal?: AbortSignal): Promise<void>;
  /** Answers from the watch; asks the API only for a pod that the watch has never told of. */
  find(pod: PodKey): Promise<PodCondition>;
  /** Notes that the API says that a pod is gone, before the watch may tell. */
  drop(uid: string): void;
  /** Those that are there, also ended ones. */
  list(): readonly PodView[];
  /** Takes in what an answer of the API said of a pod. */
  take(pod: WirePod): PodView;
  /** Resolves when something may have happened to a pod, or after `ms`; to be called before `find`. */
  next(
    uid: string,
    options: { readonly ms?: number; readonly signal?: AbortSignal },
  ): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface PodKey {
  readonly pod: string;
  readonly namespace: string;
  readonly uid: string;
}

/** How long an answer waits for a watch that has just ended. */
const reconnectMs = 2_000;
const turnsToNotice = 5;
const maxCached = 5_000;
const goneExit: ServerExit = { code: null, signal: null, reason: podDeleted };

export function createPods(
  cluster: Cluster,
  { hubId, namespace }: { readonly hubId: string; readonly namespace: () => Promise<string> },
): Pods {
  const views = new Map<string, PodView>();
  const versions = new Map<string, string>();
  /** How pods ended that are gone, the last ones. */
  const gone = new Map<string, ServerExit>();
  const waiting = new Map<string, Set<() => void>>();
  const closing = new AbortController();
  const { signal } = closing;
  let trouble: Error | undefined;
  let isListed = false;
  let isConnected = false;
  let watching: Promise<void> | undefined;

  function wake(uid: string): void {
    const resolvers = waiting.get(uid) ?? [];
    waiting.delete(uid);
    for (const resolve of resolvers) resolve();
  }

  function wakeAll(): void {
    for (const uid of [...waiting.keys()]) wake(uid);
  }

  function put(pod: WirePod): PodView {
    const { uid, resourceVersion } = pod.metadata;
    const known = versions.get(uid);
    // An answer to a request may be older than what the watch has told meanwhile.
    const isOlder = known !== undefined && Number(resourceVersion) < Number(known);
    const view = viewOf(pod);
    if (isOlder || gone.has(uid)) return views.get(uid) ?? view;
    views.set(uid, view);
    versions.set(uid, resourceVersion);
    wake(uid);
    return view;
  }

  function forget(uid: string, last: PodView | undefined): void {
    views.delete(uid);
    versions.delete(uid);
    if (gone.has(uid)) return;
    gone.set(uid, last === undefined ? goneExit : exitOf(last));
    const [oldest] = gone.keys();
    if (gone.size > maxCached && oldest !== undefined) gone.delete(oldest);
    wake(uid);
  }

  function takeList(pods: readonly WirePod[], version: string): void {
    const there = new Set(pods.map(({ metadata }) => metadata.uid));
    for (const [uid, view] of [...views]) {
      // One that was created after the list is not in it.
      const isNewer = Number(versions.get(uid)) > Number(version);
      if (!there.has(uid) && !isNewer) forget(uid, view);
    }
    for (const pod of pods) put(pod);
    isListed = true;
    wakeAll();
  }

  async function watch(): Promise<void> {
    const path = `/api/v1/namespaces/${await namespace()}/pods`;
    const labelSelector = selectorOf({ [hubLabels.instance]: hubId });
    const handlers = {
      onList: takeList,
      onChange: (pod: WirePod, isGone: boolean) => {
        if (isGone) forget(pod.metadata.uid, viewOf(pod));
        else put(pod);
      },
      onConnection: (state: WatchConnection) => {
        isConnected = state === 'connected';
        if (state !== 'reconnecting') trouble = isConnected ? undefined : (state as Error);
        wakeAll();
      },
    };
    await watchResource(cluster, { path, labelSelector }, { handlers, signal });
  }

  function open(): void {
    watching ??= watch().catch((thrown: unknown) => {
      trouble = thrown instanceof Error ? thrown : new Error(String(thrown));
      watching = undefined;
      wakeAll();
    });
  }

  const any = '';

  function next(
    uid: string,
    { ms, signal: left }: { readonly ms?: number; readonly signal?: AbortSignal },
  ): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        left?.removeEventListener('abort', done);
        waiting.get(uid)?.delete(done);
        resolve();
      };
      const timer = ms === undefined ? undefined : setTimeout(done, ms);
      const isClosed = signal.aborted && ms === undefined;
      if (left?.aborted === true || isClosed) return done();
      left?.addEventListener('abort', done, { once: true });
      const resolvers = waiting.get(uid) ?? new Set();
      waiting.set(uid, resolvers.add(done));
    });
  }

  async function ask({ pod, namespace: where, uid }: PodKey): Promise<PodCondition> {
    try {
      const found: WirePod = await cluster.call('GET', `/api/v1/namespaces/${where}/pods/${pod}`);
      if (found.metadata.uid === uid) return { is: 'there', view: put(found) };
    } catch (thrown) {
      if (!isMissing(thrown)) return { is: 'unknown', reason: sentenceOf(thrown) };
    }
    forget(uid, undefined);
    return { is: 'gone', exit: goneExit };
  }

  return {
    open,
    next,

    async ready(left) {
      for (;;) {
        left?.throwIfAborted();
        signal.throwIfAborted();
        open();
        const changed = next(any, left === undefined ? {} : { signal: left });
        if (trouble !== undefined) throw trouble;
        if (isListed) return;
        await changed;
      }
    },

    async find(key) {
      // That the API has closed the connection takes some turns of the event loop to be noticed.
      for (let turn = 0; turn < turnsToNotice; turn += 1) await setImmediate();
      if (signal.aborted) return ask(key);
      const deadlineMs = systemClock.monotonicMs() + reconnectMs;
      // What is known may be old by now: either the API comes back at once, or it is away.
      while (isListed && !isConnected && trouble === undefined && !signal.aborted) {
        const leftMs = deadlineMs - systemClock.monotonicMs();
        if (leftMs <= 0) break;
        await next(any, { ms: leftMs });
      }
      const view = views.get(key.uid);
      const exit = gone.get(key.uid);
      if (exit !== undefined) return { is: 'gone', exit };
      if (view !== undefined && hasEnded(view)) return { is: 'there', view };
      if (trouble !== undefined) return { is: 'unknown', reason: sentenceOf(trouble) };
      return view === undefined ? ask(key) : { is: 'there', view };
    },

    list: () => [...views.values()],
    take: put,
    drop: (uid) => forget(uid, views.get(uid)),

    async [Symbol.asyncDispose]() {
      closing.abort(new Error('The hub is stopping.'));
      wakeAll();
      await watching;
    },
  };
}
