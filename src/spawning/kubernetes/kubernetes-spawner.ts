import { createLimiter } from '../../platform/concurrency/limiter.ts';
import { createPeriodic } from '../../platform/concurrency/periodic.ts';
import { HubError } from '../../platform/errors.ts';
import { type Text, text } from '../../platform/texts/text.ts';
import type { ResumeRequest, StartCallbacks } from '../../plugin/host/spawn-request.ts';
import type { ServerExit, SpawnedServer, Spawner, SpawnerHost } from '../../plugin/host/spawner.ts';
import { chooseImage, imageForm } from '../images/choose-image.ts';
import { systemClock } from '../processes/clock.ts';
import { ApiRefusal, explainRefusal, messageOf } from './api-errors.ts';
import { untilRunning } from './await-pod.ts';
import { createClaims } from './claims.ts';
import { createCluster } from './cluster.ts';
import { examineCluster } from './examine-cluster.ts';
import { followPod } from './follow-pod.ts';
import type { KubernetesOptions, KubernetesProfileOptions } from './kubernetes-options.ts';
import { createPodEvents } from './pod-events.ts';
import { readLastOutput } from './pod-output.ts';
import type { KubernetesRequest } from './pod-request.ts';
import { type PodState, readPodState, urlOf } from './pod-state.ts';
import { createPodUsage } from './pod-usage.ts';
import { exitOf, hasEnded, type PodView } from './pod-view.ts';
import { createPods, type PodKey } from './pods.ts';
import { createServerPods, keyOf } from './server-pods.ts';

/** A server this hub started or found again. */
interface LiveServer {
  readonly leave: AbortController;
  /** Tells of an end that the hub itself brought about. */
  readonly tellEnd: (exit: ServerExit) => void;
}

/** So many pods are created at once: a hub that is killed has kept the state of all others. */
const parallelStarts = 4;
/** So many begin to be followed at once. */
const parallelConnections = 4;
const sweepIntervalMs = 30_000;
/** Where nothing listens: for a server whose pod ended before it had an address. */
const nowhere = 'http://127.0.0.1:1';

/** Creates the spawner of pods. Disposing of it leaves the servers running. */
export function createKubernetesSpawner(
  options: KubernetesOptions,
  {
    log,
    hubId,
    activeServers,
    directory,
  }: Pick<SpawnerHost, 'log' | 'hubId' | 'activeServers' | 'directory'>,
): Spawner<KubernetesProfileOptions> {
  const cluster = createCluster(options, directory);
  const namespace = async () => options.namespace ?? (await cluster.defaultNamespace());
  const pods = createPods(cluster, { hubId, namespace });
  const events = createPodEvents(cluster, namespace);
  const claims = createClaims(cluster, options, { hubId, namespace });
  const podUsage = createPodUsage(cluster, { hubId, log });
  const servers = createServerPods({ cluster, pods, log }, { options, hubId, namespace });
  const inTurn = createLimiter(parallelStarts);
  const followTools = { cluster, pods, inTurn: createLimiter(parallelConnections), log };
  const closing = new AbortController();
  const live = new Map<string, LiveServer>();
  /** Pods that start here, by uid: they are no orphans, though their servers may not count as active yet. */
  const starting = new Set<string>();
  const form = imageForm(options);
  const sweeping = createPeriodic({
    intervalMs: Math.min(sweepIntervalMs, Math.max(1_000, options.orphan_grace * 500)),
    work: removeOrphans,
    onError: (error) => log.warn({ reason: messageOf(error) }, 'could not look for orphaned pods'),
  });
  /** When a pod was first seen without its server, by uid. */
  const orphanSinceMs = new Map<string, number>();

  /** Deletes pods whose servers do not run, once the grace time is over. */
  async function removeOrphans(): Promise<void> {
    await pods.ready(closing.signal);
    const unknown = pods.list().filter(({ uid }) => !live.has(uid) && !starting.has(uid));
    // Asked after the list: a pod that is on it and whose server is not active by now is left over.
    const active =
      unknown.length === 0
        ? new Set<string>()
        : await activeServers(unknown.map(({ serverId }) => serverId));
    const orphans = unknown.filter(
      ({ serverId, uid }) => !active.has(serverId) && !starting.has(uid),
    );
    const nowMs = systemClock.monotonicMs();
    const isOrphan = new Set(orphans.map(({ uid }) => uid));
    for (const uid of orphanSinceMs.keys()) if (!isOrphan.has(uid)) orphanSinceMs.delete(uid);
    for (const view of orphans) {
      const sinceMs = orphanSinceMs.get(view.uid) ?? nowMs;
      orphanSinceMs.set(view.uid, sinceMs);
      if (nowMs - sinceMs < options.orphan_grace * 1000) continue;
      const { name: pod, serverId } = view;
      await servers.end(podKey(view), { graceMs: 0, signal: closing.signal });
      await servers.removeSecret(serverId);
      log.warn({ pod, serverId }, 'orphaned pod deleted');
    }
  }

  function follow(
    state: PodState & { readonly url: string },
    { isNew, onOutput }: Pick<StartCallbacks, 'onOutput'> & { readonly isNew: boolean },
  ): SpawnedServer {
    const leave = new AbortController();
    const ending = Promise.withResolvers<ServerExit>();
    const { promise: ended, resolve: onEnd } = Promise.withResolvers<void>();
    live.set(state.uid, { leave, tellEnd: ending.resolve });
    const { signal } = leave;
    const movedExit = (view: PodView) => movedExitOf(view, state);
    const followed = { key: state, isNew, onOutput, movedExit, onEnd, signal };
    const watching = followPod(followed, followTools);
    // An ended pod is left over from now on.
    void watching.then(() => live.delete(state.uid));
    return { url: state.url, state, exited: Promise.race([watching, ending.promise]), ended };
  }

  function forget(uid: string): void {
    const server = live.get(uid);
    live.delete(uid);
    server?.tellEnd({ code: null, signal: null });
    server?.leave.abort();
  }

  /** Goes on with a pod that was created until its server runs; when that fails, nothing is left of it. */
  async function awaitServer(
    kept: PodState,
    request: ResumeRequest,
    claimNames: readonly string[],
  ): Promise<SpawnedServer> {
    const { onProgress, onOutput } = request;
    starting.add(kept.uid);
    try {
      const signal = AbortSignal.any([request.signal, closing.signal]);
      const view = await untilRunning(
        { key: kept, image: kept.image, claims: claimNames, onProgress, signal },
        { pods, events, options },
      );
      const url = view.ip === undefined ? nowhere : urlOf(view.ip, kept.port);
      onProgress({ progress: 50, phase: 'starting', message: text`The server is started.` });
      return follow({ ...kept, url }, { isNew: true, onOutput });
    } catch (thrown) {
      // The next hub goes on with it.
      if (closing.signal.aborted) throw thrown;
      await readLastOutput(cluster, kept, { onOutput }).catch(() => undefined);
      await servers
        .end(kept, { graceMs: 0 })
        .then(() => servers.removeSecret(kept.serverId))
        .catch((error: unknown) =>
          log.warn({ pod: kept.pod, reason: messageOf(error) }, 'pod left for later deletion'),
        );
      request.signal.throwIfAborted();
      throw thrown;
    } finally {
      starting.delete(kept.uid);
    }
  }

  async function start(request: KubernetesRequest): Promise<SpawnedServer> {
    const { signal, onProgress } = request;
    signal.throwIfAborted();
    requireKnown(request);
    const image = chooseImage(request, options, 'KubernetesSpawner');
    await pods.ready(signal);
    await claims.ensure(request, { signal, onProgress });
    const kept = await inTurn(() => launch(request, image), signal);
    return awaitServer(kept.state, request, kept.claimNames);
  }

  /** Creates a pod and keeps its state: from then on the next hub goes on with it. */
  async function launch(request: KubernetesRequest, image: string) {
    request.onProgress({
      progress: 3,
      phase: 'starting',
      message: text`Creating the pod.`,
    });
    const created = await servers.create({ request, options, image });
    const { serverId } = request;
    const state: PodState = { ...keyOf(created), serverId, image, port: options.port };
    starting.add(state.uid);
    try {
      await request.keepState(state);
    } catch (thrown) {
      starting.delete(state.uid);
      await servers.end(state, { graceMs: 0 }).catch(() => undefined);
      throw thrown;
    }
    return { state, claimNames: claimsOf(created.spec?.volumes ?? []) };
  }

  return {
    needsReachableHub: true,
    needsAccounts: options.claims.length > 0,
    reach: 'anywhere',
    ...(form === undefined ? {} : { optionsForm: form }),

    async open() {
      // Before the hub listens: loaded later, the library would keep visitors waiting.
      await cluster.load();
      // Without waiting: an API that is away keeps users from nothing but servers.
      pods.open();
      void sweeping.run();
    },

    start: (request) => explained(() => start(request)),

    async resume(stored, request) {
      const kept = readPodState(stored);
      if (kept === undefined) return undefined;
      await pods.ready(request.signal);
      const condition = await pods.find(kept);
      if (condition.is === 'gone') return undefined;
      const claimNames = condition.is === 'there' ? condition.view.claims : [];
      return awaitServer(kept, request, claimNames);
    },

    async discard(serverId, { graceMs }) {
      await explained(() => servers.endAll(serverId, { graceMs }));
    },

    async delete(server, { withUser, signal }) {
      await explained(async () => {
        await servers.endAll(server.serverId, { graceMs: 0, signal });
        if (options.delete_claims) await claims.remove(server, { withUser, signal });
      });
    },

    async stop(stored, { graceMs, signal }) {
      const state = readPodState(stored);
      if (state === undefined) return;
      await servers.end(state, { graceMs, signal });
      await servers.removeSecret(state.serverId);
      forget(state.uid);
    },

    async poll(stored) {
      const state = readPodState(stored);
      if (state === undefined) return { running: false };
      const condition = await pods.find(state);
      if (condition.is === 'unknown') return { running: 'unknown', reason: condition.reason };
      if (condition.is === 'gone') return { running: false, exit: condition.exit };
      const { view } = condition;
      if (hasEnded(view)) return { running: false, exit: exitOf(view) };
      if (view.isLost) {
        return {
          running: 'unknown',
          reason: text`The node ${view.node ?? ''} does not answer`,
        };
      }
      const exit = movedExitOf(view, state);
      return exit === undefined ? { running: true } : { running: false, exit };
    },

    async restore(stored, { onOutput }) {
      const state = readPodState(stored);
      if (state?.url === undefined) return undefined;
      const { url } = state;
      await pods.ready();
      const condition = await pods.find(state);
      if (condition.is === 'unknown') throw new HubError('unavailable', condition.reason);
      if (condition.is === 'gone' || hasEnded(condition.view)) return undefined;
      if (movedExitOf(condition.view, state) !== undefined) return undefined;
      return follow({ ...state, url }, { isNew: false, onOutput });
    },

    usage: (states) => podUsage(states.map(readPodState)),

    examine: ({ signal }) => examineCluster({ cluster, namespace, options }, signal),

    async [Symbol.asyncDispose]() {
      closing.abort(new Error('The hub is stopping.'));
      await sweeping[Symbol.asyncDispose]();
      for (const { leave } of live.values()) leave.abort();
      await pods[Symbol.asyncDispose]();
      await cluster[Symbol.asyncDispose]();
    },
  };
}

/** What ends a server whose pod has another address than the one that visitors are sent to. */
function movedExitOf({ ip }: PodView, { url, port }: PodState): ServerExit | undefined {
  const hasMoved = url !== undefined && ip !== undefined && urlOf(ip, port) !== url;
  return hasMoved
    ? { code: null, signal: null, reason: text`its pod has another address` }
    : undefined;
}

function podKey({ name, namespace, uid }: PodView): PodKey {
  return { pod: name, namespace, uid };
}

function claimsOf(
  volumes: readonly { readonly persistentVolumeClaim?: { readonly claimName: string } }[],
): string[] {
  return volumes.flatMap(({ persistentVolumeClaim: claim }) =>
    claim === undefined ? [] : [claim.claimName],
  );
}

function requireKnown({ systemUser, socket, limits }: KubernetesRequest): void {
  const refuse = (message: Text, hint: Text) => new HubError('internal', message, { hint });
  if (systemUser !== undefined) {
    throw refuse(
      text`Servers in pods know no system users.`,
      text`The administrator must remove Spawner.system_user and may set KubernetesSpawner.run_as_user.`,
    );
  }
  if (socket) {
    throw refuse(
      text`Servers in pods cannot listen on a Unix socket.`,
      text`The administrator must remove Spawner.socket.`,
    );
  }
  if (limits.processes !== undefined) {
    throw refuse(
      text`Kubernetes holds no limit of processes for one pod.`,
      text`The administrator must remove process_limit; the kubelet has a limit for all pods (podPidsLimit).`,
    );
  }
}

async function explained<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (thrown) {
    throw thrown instanceof ApiRefusal
      ? explainRefusal(thrown, text`what the hub asked for`)
      : thrown;
  }
}
