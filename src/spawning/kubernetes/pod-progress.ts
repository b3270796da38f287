import { type Text, text } from '../../platform/texts/text.ts';
import type { SpawnProgress } from '../../plugin/host/spawn-request.ts';
import { containerStarted, pulling } from '../spawner-texts.ts';
import type { PodEvent } from './pod-events.ts';
import type { PodView } from './pod-view.ts';

/** What a start that is under way says on the page, by how its pod is and what was told of it. */
export function progressOf(
  view: PodView,
  events: readonly PodEvent[],
): SpawnProgress & { readonly phase: NonNullable<SpawnProgress['phase']> } {
  const { unscheduled, waiting, node } = view;
  if (unscheduled !== undefined) return whileUnscheduled(unscheduled, events);
  const latest = events.findLast(({ reason }) => nodeEvents[reason] !== undefined);
  if (waiting !== undefined && isPullTrouble(waiting.reason)) {
    const message = text`The image cannot be pulled yet: ${pullMessage(waiting.message, events)}.`;
    return { progress: 30, phase: 'pulling', message, reason: waiting.reason };
  }
  const reported = latest && nodeEvents[latest.reason]?.(latest.message);
  if (reported !== undefined && latest !== undefined) return { ...reported, reason: latest.reason };
  return {
    progress: 20,
    phase: 'starting',
    message:
      node === undefined ? text`A node was chosen.` : text`The node ${node} prepares the server.`,
  };
}

type NodeProgress = SpawnProgress & { readonly phase: NonNullable<SpawnProgress['phase']> };

const nodeEvents: Readonly<Record<string, (message: string) => NodeProgress>> = {
  Pulling: (message) => ({
    progress: 30,
    phase: 'pulling',
    message: withImage(message, pulling, () => text`Pulling the image.`),
  }),
  Pulled: (message) => ({
    progress: 40,
    phase: 'starting',
    message: withImage(
      message,
      (image: string) => text`The image ${image} is there.`,
      () => text`The image is there.`,
    ),
  }),
  Created: () => ({
    progress: 45,
    phase: 'starting',
    message: text`The container is created.`,
  }),
  Started: () => ({
    progress: 48,
    phase: 'starting',
    message: containerStarted,
  }),
  FailedMount: (message) => storage(message),
  FailedAttachVolume: (message) => storage(message),
  FailedCreatePodSandBox: (message) => ({
    progress: 22,
    phase: 'starting',
    message: text`The node cannot prepare the pod yet: ${message}.`,
  }),
  NetworkNotReady: (message) => ({
    progress: 22,
    phase: 'starting',
    message: text`The network of the node is not ready yet: ${message}.`,
  }),
};

function storage(message: string): NodeProgress {
  return { progress: 25, phase: 'starting', message: text`Waiting for storage: ${message}.` };
}

function withImage<Said>(
  message: string,
  named: (image: string) => Said,
  unnamed: () => Said,
): Said {
  const [, image] = /image "([^"]+)"/.exec(message) ?? [];
  return image === undefined ? unnamed() : named(image);
}

function whileUnscheduled(
  { reason, message }: { readonly reason: string; readonly message: string },
  events: readonly PodEvent[],
): NodeProgress {
  const base = { progress: 10, phase: 'pending' } as const;
  if (events.at(-1)?.reason === 'TriggeredScaleUp') {
    return {
      ...base,
      message: text`Waiting for a node that is being added.`,
      reason: 'TriggeredScaleUp',
    };
  }
  const claim = events.findLast(({ reason: each }) => claimEvents.has(each));
  if (/PersistentVolumeClaim/i.test(message)) {
    const why = claim?.isWarning === true ? claim.message : message;
    return {
      ...base,
      message: text`Waiting for storage: ${why}.`,
      reason: claim?.reason ?? reason,
    };
  }
  if (reason === 'SchedulingGated') {
    return { ...base, message: text`Waiting for admission to the queue of the cluster.`, reason };
  }
  if (reason !== '') {
    return { ...base, message: text`Waiting for a node with room: ${message}.`, reason };
  }
  return { progress: 5, phase: 'scheduling', message: text`Looking for a node.` };
}

const claimEvents = new Set([
  'ProvisioningFailed',
  'ExternalProvisioning',
  'Provisioning',
  'WaitForFirstConsumer',
  'FailedBinding',
]);

function isPullTrouble(reason: string): boolean {
  return reason === 'ErrImagePull' || reason === 'ImagePullBackOff';
}

/** A back-off says nothing of its own; what was told of the attempt before does. */
function pullMessage(waiting: string, events: readonly PodEvent[]): string {
  if (!/^(?:Back-off|$)/.test(waiting)) return waiting;
  const failed = events.findLast(
    ({ reason, message }) => reason === 'Failed' && /pull/i.test(message),
  );
  return failed?.message ?? waiting;
}

/** Why a pod will never run however long one waits; undefined while it still may. */
export function hopelessness(
  view: PodView,
  events: readonly PodEvent[],
  image: string,
): { readonly sentence: Text; readonly hint?: Text } | undefined {
  if (view.waiting === undefined) return undefined;
  const { reason, message } = view.waiting;
  switch (reason) {
    case 'InvalidImageName':
      return { sentence: text`The image ${image} has a name that no node understands.` };
    case 'ErrImageNeverPull':
      return {
        sentence: text`The image ${image} is not on the node, and none is pulled (pull_policy).`,
      };
    case 'ErrImagePull':
    case 'ImagePullBackOff':
      return unpullable(pullMessage(message, events), image);
    case 'CreateContainerConfigError':
      return misconfigured(message, image);
    case 'CreateContainerError':
    case 'RunContainerError':
      return { sentence: text`The node cannot create the container: ${message}.` };
    default:
      return undefined;
  }
}

/** Other failures, such as a registry that is down, may pass. */
function unpullable(message: string, image: string): { readonly sentence: Text } | undefined {
  if (/no matching manifest|no match for platform/i.test(message)) {
    return {
      sentence: text`The image ${image} does not exist for the processor architecture of the node.`,
    };
  }
  if (
    /unauthorized|authentication required|access denied|forbidden|insufficient_scope/i.test(message)
  ) {
    return {
      sentence: text`The image ${image} is private, or there is none of that name: its registry does not give it without other credentials (pull_secrets).`,
    };
  }
  if (/not found|manifest unknown|does not exist|name unknown/i.test(message)) {
    return { sentence: text`There is no image ${image} in its registry.` };
  }
  return undefined;
}

function misconfigured(
  message: string,
  image: string,
): { readonly sentence: Text; readonly hint?: Text } | undefined {
  if (/non-numeric user/.test(message)) {
    return {
      sentence: text`The server is not started: the user of the image ${image} has a name, not a number.`,
      hint: text`The administrator must set KubernetesSpawner.run_as_user, such as 1000.`,
    };
  }
  if (/runAsNonRoot|will run as root/.test(message)) {
    return {
      sentence: text`The server is not started: it would run as root in ${image}.`,
      hint: text`The administrator must set KubernetesSpawner.run_as_user, such as 1000.`,
    };
  }
  // The Secret may just not have reached the node.
  return undefined;
}
