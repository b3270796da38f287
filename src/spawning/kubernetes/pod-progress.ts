import type { SpawnProgress } from '../../plugin-host/spawn-request.ts';
import { sentences } from '../../texts/known-sentences.ts';
import { inEnglish } from '../../texts/text.ts';
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
    const message = inEnglish`The image cannot be pulled yet: ${pullMessage(waiting.message, events)}.`;
    return { progress: 30, phase: 'pulling', message, reason: waiting.reason };
  }
  const told = latest && nodeEvents[latest.reason]?.(latest.message);
  if (told !== undefined && latest !== undefined) return { ...told, reason: latest.reason };
  return {
    progress: 20,
    phase: 'starting',
    message: String(node === undefined ? sentences.nodeChosen() : sentences.nodePrepares(node)),
  };
}

type NodeProgress = SpawnProgress & { readonly phase: NonNullable<SpawnProgress['phase']> };

const nodeEvents: Readonly<Record<string, (message: string) => NodeProgress>> = {
  Pulling: (message) => ({
    progress: 30,
    phase: 'pulling',
    message: String(withImage(message, sentences.pulling, sentences.pullingAnImage)),
  }),
  Pulled: (message) => ({
    progress: 40,
    phase: 'starting',
    message: String(withImage(message, sentences.imageThere, sentences.anImageThere)),
  }),
  Created: () => ({
    progress: 45,
    phase: 'starting',
    message: String(sentences.containerCreated()),
  }),
  Started: () => ({
    progress: 48,
    phase: 'starting',
    message: String(sentences.containerStarted()),
  }),
  FailedMount: (message) => storage(message),
  FailedAttachVolume: (message) => storage(message),
  FailedCreatePodSandBox: (message) => ({
    progress: 22,
    phase: 'starting',
    message: inEnglish`The node cannot prepare the pod yet: ${message}.`,
  }),
  NetworkNotReady: (message) => ({
    progress: 22,
    phase: 'starting',
    message: inEnglish`The network of the node is not ready yet: ${message}.`,
  }),
};

function storage(message: string): NodeProgress {
  return { progress: 25, phase: 'starting', message: String(sentences.waitingForStorage(message)) };
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
      message: String(sentences.waitingForNewNode()),
      reason: 'TriggeredScaleUp',
    };
  }
  const claim = events.findLast(({ reason: each }) => claimEvents.has(each));
  if (/PersistentVolumeClaim/i.test(message)) {
    const why = claim?.isWarning === true ? claim.message : message;
    return {
      ...base,
      message: String(sentences.waitingForStorage(why)),
      reason: claim?.reason ?? reason,
    };
  }
  if (reason === 'SchedulingGated') {
    return { ...base, message: String(sentences.waitingForAdmission()), reason };
  }
  if (reason !== '') {
    return { ...base, message: String(sentences.waitingForRoom(message)), reason };
  }
  return { progress: 5, phase: 'scheduling', message: String(sentences.seekingNode()) };
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
): { readonly sentence: string; readonly hint?: string } | undefined {
  if (view.waiting === undefined) return undefined;
  const { reason, message } = view.waiting;
  switch (reason) {
    case 'InvalidImageName':
      return { sentence: inEnglish`The image ${image} has a name that no node understands.` };
    case 'ErrImageNeverPull':
      return {
        sentence: inEnglish`The image ${image} is not on the node, and none is pulled (pull_policy).`,
      };
    case 'ErrImagePull':
    case 'ImagePullBackOff':
      return unpullable(pullMessage(message, events), image);
    case 'CreateContainerConfigError':
      return misconfigured(message, image);
    case 'CreateContainerError':
    case 'RunContainerError':
      return { sentence: inEnglish`The node cannot create the container: ${message}.` };
    default:
      return undefined;
  }
}

/** Other failures, such as a registry that is down, may pass. */
function unpullable(message: string, image: string): { readonly sentence: string } | undefined {
  if (/no matching manifest|no match for platform/i.test(message)) {
    return {
      sentence: inEnglish`The image ${image} does not exist for the processor architecture of the node.`,
    };
  }
  if (
    /unauthorized|authentication required|access denied|forbidden|insufficient_scope/i.test(message)
  ) {
    return {
      sentence: inEnglish`The image ${image} is private, or there is none of that name: its registry does not give it without other credentials (pull_secrets).`,
    };
  }
  if (/not found|manifest unknown|does not exist|name unknown/i.test(message)) {
    return { sentence: inEnglish`There is no image ${image} in its registry.` };
  }
  return undefined;
}

function misconfigured(
  message: string,
  image: string,
): { readonly sentence: string; readonly hint?: string } | undefined {
  if (/non-numeric user/.test(message)) {
    return {
      sentence: inEnglish`The server is not started: the user of the image ${image} has a name, not a number.`,
      hint: inEnglish`The administrator must set KubernetesSpawner.run_as_user, such as 1000.`,
    };
  }
  if (/runAsNonRoot|will run as root/.test(message)) {
    return {
      sentence: inEnglish`The server is not started: it would run as root in ${image}.`,
      hint: inEnglish`The administrator must set KubernetesSpawner.run_as_user, such as 1000.`,
    };
  }
  // The Secret may just not have reached the node.
  return undefined;
}
