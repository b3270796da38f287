import { HubError } from '../../platform/errors.ts';
import { inSeconds } from '../../platform/texts/seconds.ts';
import { isSamePhrase, joined, type Phrase, type Text, text } from '../../platform/texts/text.ts';
import type { SpawnProgress, StartCallbacks } from '../../plugin/host/spawn-request.ts';
import { systemClock } from '../processes/clock.ts';
import { notStartedBecause } from '../spawner-texts.ts';
import type { KubernetesOptions } from './kubernetes-options.ts';
import type { PodEvents } from './pod-events.ts';
import { hopelessness, progressOf } from './pod-progress.ts';
import { exitOf, hasEnded, type PodView } from './pod-view.ts';
import type { PodKey, Pods } from './pods.ts';

export interface AwaitedPod extends Pick<StartCallbacks, 'onProgress'> {
  readonly key: PodKey;
  readonly image: string;
  readonly claims: readonly string[];
  readonly signal: AbortSignal;
}

/** While an image is pulled, Kubernetes says nothing of how far it is: the hub is told that it goes on. */
const reminderMs = 15_000;

/**
 * Waits until a pod runs and has an address, or has ended, and says meanwhile on the page what it waits for.
 * Throws with a sentence when it will never run, or the reason of the signal.
 */
export async function untilRunning(
  awaited: AwaitedPod,
  deps: {
    readonly pods: Pods;
    readonly events: PodEvents;
    readonly options: Pick<KubernetesOptions, 'schedule_timeout' | 'pull_timeout'>;
  },
): Promise<PodView> {
  const { key, image, claims, signal } = awaited;
  const { pods, events } = deps;
  const waits = createWaits(awaited, deps.options);
  let wake = new AbortController();
  using reported = events.follow({ uid: key.uid, claims }, () => wake.abort());

  for (;;) {
    signal.throwIfAborted();
    wake = new AbortController();
    const changed = pods.next(key.uid, {
      ms: reminderMs,
      signal: AbortSignal.any([signal, wake.signal]),
    });
    const condition = await pods.find(key);
    if (condition.is === 'gone') {
      const reason = condition.exit.reason ?? text`its pod is gone`;
      throw failure(notStartedBecause(reason));
    }
    if (condition.is === 'unknown') {
      const message = condition.reason;
      waits.say({ progress: 10, message, phase: 'pending', reason: 'unknown' });
    } else {
      const { view } = condition;
      if (hasEnded(view)) return requireStarted(view);
      if (view.isRunning && view.ip !== undefined) return view;
      const hopeless = hopelessness(view, reported.events, image);
      if (hopeless !== undefined) throw failure(hopeless.sentence, hopeless.hint);
      waits.say(progressOf(view, reported.events));
    }
    await changed;
  }
}

/** What a container printed and with which code it ended is told as for every server; others never ran. */
function requireStarted(view: PodView): PodView {
  const exit = exitOf(view);
  if (exit.reason === undefined || view.terminated?.reason === 'OOMKilled') return view;
  throw failure(notStartedBecause(exit.reason));
}

function failure(sentence: Text, hint?: Text): HubError {
  return new HubError('upstream_failed', sentence, hint === undefined ? {} : { hint });
}

/** Says each step once, and ends waits that are limited by options. */
function createWaits(
  { onProgress, image }: Pick<AwaitedPod, 'onProgress' | 'image'>,
  { schedule_timeout, pull_timeout }: Pick<KubernetesOptions, 'schedule_timeout' | 'pull_timeout'>,
) {
  let phase: SpawnProgress['phase'];
  let sinceMs = 0;
  let last: Phrase | undefined;
  let lastMs = 0;
  return {
    say(event: SpawnProgress): void {
      const nowMs = systemClock.monotonicMs();
      if (event.phase !== phase) sinceMs = nowMs;
      phase = event.phase;
      const seconds = (nowMs - sinceMs) / 1000;
      if (phase === 'pending' && schedule_timeout !== undefined && seconds > schedule_timeout) {
        const duration = inSeconds(String(schedule_timeout));
        throw failure(text`The server did not start within ${duration}. ${event.message}`);
      }
      if (phase === 'pulling' && seconds > pull_timeout) {
        const duration = inSeconds(String(pull_timeout));
        throw failure(text`The image ${image} was not pulled within ${duration}.`);
      }
      const isReminder = phase === 'pulling' && nowMs - lastMs >= reminderMs;
      const isRepeated = isSamePhrase(event.message, last);
      if (isRepeated && !isReminder) return;
      last = event.message;
      lastMs = nowMs;
      const message = isRepeated
        ? joined([event.message, text`It has taken ${inSeconds(Math.round(seconds))} so far.`])
        : event.message;
      onProgress({ ...event, message });
    },
  };
}
