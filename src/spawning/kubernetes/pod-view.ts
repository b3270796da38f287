import { constants } from 'node:os';
import type { V1ContainerStatus, V1Pod, V1PodCondition } from '@kubernetes/client-node';
import { joined, type Text, text } from '../../platform/texts/text.ts';
import type { ServerExit } from '../../plugin/host/spawner.ts';
import { outOfMemory } from '../spawner-texts.ts';
import { oneLine } from '../unreachable.ts';
import { hubLabels } from './hub-objects.ts';
import { serverContainer } from './pod-patch.ts';
import { parseQuantity } from './quantity.ts';
import type { ApiObject } from './resource-watch.ts';

/** A pod as the API sends it: dates are text there. */
export type WirePod = V1Pod & ApiObject;

/** What matters of a pod, and is kept in memory of each. */
export interface PodView {
  readonly name: string;
  readonly namespace: string;
  readonly uid: string;
  readonly serverId: string;
  readonly phase: string;
  readonly ip: string | undefined;
  readonly node: string | undefined;
  /** Whether its deletion was asked for. */
  readonly isLeaving: boolean;
  readonly isRunning: boolean;
  /** Why no node was found for it yet; undefined once one was. */
  readonly unscheduled: { readonly reason: string; readonly message: string } | undefined;
  /** Why its container does not run yet, such as `ErrImagePull`. */
  readonly waiting: { readonly reason: string; readonly message: string } | undefined;
  readonly terminated:
    | {
        readonly code: number;
        readonly signal: number | undefined;
        readonly reason: string;
        readonly message: string;
      }
    | undefined;
  /** Why the pod as a whole failed, such as `Evicted`. */
  readonly failure: { readonly reason: string; readonly message: string } | undefined;
  /** Whether its node does not answer, so that nothing is known of it. */
  readonly isLost: boolean;
  readonly memoryLimitBytes: number | undefined;
  /** Claims that it mounts. */
  readonly claims: readonly string[];
}

/** Reads what matters of a pod. */
export function viewOf(pod: WirePod): PodView {
  const { metadata, spec, status } = pod;
  const containers = [
    ...(status?.containerStatuses ?? []),
    ...(status?.initContainerStatuses ?? []),
  ];
  const server = containers.find(({ name }) => name === serverContainer);
  const scheduled = findCondition(pod, 'PodScheduled');
  const isScheduled = scheduled?.status === 'True' || spec?.nodeName !== undefined;
  const limits = spec?.containers.find(({ name }) => name === serverContainer)?.resources?.limits;
  return {
    name: metadata.name,
    namespace: metadata.namespace ?? '',
    uid: metadata.uid,
    serverId: metadata.labels?.[hubLabels.serverId] ?? '',
    phase: status?.phase ?? 'Pending',
    ip: status?.podIP,
    node: spec?.nodeName,
    isLeaving: metadata.deletionTimestamp !== undefined,
    isRunning: server?.state?.running !== undefined,
    unscheduled: isScheduled
      ? undefined
      : { reason: scheduled?.reason ?? '', message: oneLine(scheduled?.message ?? '') },
    waiting: waitingOf(containers),
    terminated: terminatedOf(server),
    failure: failureOf(pod),
    isLost: isLost(pod),
    memoryLimitBytes: parseQuantity(limits?.['memory'] ?? ''),
    claims: (spec?.volumes ?? []).flatMap(({ persistentVolumeClaim: claim }) =>
      claim === undefined ? [] : [claim.claimName],
    ),
  };
}

function findCondition({ status }: WirePod, type: string): V1PodCondition | undefined {
  return status?.conditions?.find((each) => each.type === type);
}

/**
 * A node that does not answer leaves its pods as they were, but for `Ready`, which the control plane takes from
 * them (node lifecycle controller). The kubelet itself takes `ContainersReady` with it.
 */
function isLost(pod: WirePod): boolean {
  if (pod.status?.phase === 'Unknown' || pod.status?.reason === 'NodeLost') return true;
  const isTaken =
    findCondition(pod, 'ContainersReady')?.status === 'True' &&
    findCondition(pod, 'Ready')?.status === 'False';
  return isTaken && (pod.spec?.readinessGates ?? []).length === 0;
}

/** Containers that wait for others say nothing of their own. */
const usualWaits = new Set(['ContainerCreating', 'PodInitializing', '']);

function waitingOf(containers: readonly V1ContainerStatus[]): PodView['waiting'] {
  const waiting = containers
    .map(({ state }) => state?.waiting)
    .find((each) => each !== undefined && !usualWaits.has(each.reason ?? ''));
  return waiting && { reason: waiting.reason ?? '', message: oneLine(waiting.message ?? '') };
}

function terminatedOf(server: V1ContainerStatus | undefined): PodView['terminated'] {
  const terminated = server?.state?.terminated;
  return (
    terminated && {
      code: terminated.exitCode,
      signal: terminated.signal,
      reason: terminated.reason ?? '',
      message: oneLine(terminated.message ?? ''),
    }
  );
}

/** `DisruptionTarget` tells why Kubernetes itself ended a pod (Pod disruption conditions). */
function failureOf(pod: WirePod): PodView['failure'] {
  const { reason, message } = pod.status ?? {};
  if (reason !== undefined && reason !== '') return { reason, message: oneLine(message ?? '') };
  const disrupted = findCondition(pod, 'DisruptionTarget');
  if (disrupted?.status !== 'True') return undefined;
  return { reason: disrupted.reason ?? '', message: oneLine(disrupted.message ?? '') };
}

export const podDeleted = text`its pod was deleted`;

/** Whether what runs in a pod has ended for good; its object may stay. */
export function hasEnded({ phase, terminated }: PodView): boolean {
  return phase === 'Failed' || phase === 'Succeeded' || terminated !== undefined;
}

const failures: Readonly<Record<string, (message: string, view: PodView) => Text>> = {
  Evicted: (message) => withDetail(text`its node evicted it`, message),
  NodeLost: (_, { node }) => nodeLost(node),
  NodeShutdown: (_, { node }) =>
    node === undefined ? text`its node was shut down` : text`its node ${node} was shut down`,
  Terminated: (message) => withDetail(text`its node ended it`, message),
  Shutdown: (message) => withDetail(text`its node was shut down`, message),
  Preempting: () => text`it made room for a pod of higher priority`,
  PreemptionByScheduler: () => text`it made room for a pod of higher priority`,
  PreemptionByKubeScheduler: () => text`it made room for a pod of higher priority`,
  DeletionByTaintManager: (_, { node }) => nodeLost(node),
  EvictionByEvictionAPI: () => text`its node was drained`,
  TerminationByKubelet: (message) => withDetail(text`its node ended it`, message),
  DeletionByPodGC: () => text`its node was removed`,
  DeadlineExceeded: () => text`it reached its time limit (activeDeadlineSeconds)`,
  UnexpectedAdmissionError: (message) => withDetail(text`its node refused it`, message),
  OutOfcpu: () => text`its node had no CPU left for it`,
  OutOfmemory: () => text`its node had no memory left for it`,
  NodeAffinity: () => text`its node did not fit any more`,
};

function nodeLost(node: string | undefined): Text {
  return node === undefined ? text`its node was lost` : text`its node ${node} was lost`;
}

function withDetail(reason: Text, message: string): Text {
  return message === '' ? reason : joined([reason, message], ': ');
}

/** How a server ended whose pod has ended or is gone. */
export function exitOf(view: PodView): ServerExit {
  const { terminated, failure, memoryLimitBytes } = view;
  const code = terminated?.code ?? null;
  const signal = signalName(terminated?.signal ?? (code === null ? undefined : code - 128));
  const exit = { code, signal };
  if (terminated?.reason === 'OOMKilled') {
    return { ...exit, reason: outOfMemory(memoryLimitBytes) };
  }
  if (failure !== undefined) {
    const explain = failures[failure.reason];
    const reason =
      explain?.(failure.message, view) ??
      withDetail(text`its pod failed: ${failure.reason}`, failure.message);
    return { ...exit, reason };
  }
  // What it ended with is what it makes of SIGTERM.
  if (view.isLeaving) return { ...exit, reason: podDeleted };
  if (terminated !== undefined) {
    const isStartFailure = /^(StartError|ContainerCannotRun)$/.test(terminated.reason);
    return isStartFailure ? { ...exit, reason: startFailure(terminated.message) } : exit;
  }
  if (view.phase === 'Failed' || view.phase === 'Succeeded') return exit;
  return { ...exit, reason: podDeleted };
}

function startFailure(message: string): Text {
  const command = /exec: "([^"]+)": (?:executable file not found|stat \S+: no such file)/.exec(
    message,
  );
  if (command !== null) return text`its image has no such command: ${command[1] ?? ''}`;
  if (/exec format error/.test(message)) {
    return text`its image is for another processor architecture than the node's`;
  }
  return withDetail(text`its container could not be started`, message);
}

/** Container runtimes tell a signal as 128 and its number, as shells do. */
function signalName(number: number | undefined): string | null {
  if (number === undefined || number <= 0) return null;
  return Object.entries(constants.signals).find(([, each]) => each === number)?.[0] ?? null;
}
