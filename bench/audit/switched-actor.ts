import * as actor from '../../src/platform/audit/actor.ts';
import { isRecording } from './switch.ts';

/** Stands for `src/platform/audit/actor.ts`: as it is while the hub records, and nothing while it does not. */
export function actAs<Result>(who: actor.Actor, work: () => Result): Result {
  return isRecording() ? actor.actAs(who, work) : work();
}

export function actAsHub<Result>(work: () => Result): Result {
  return isRecording() ? actor.actAsHub(work) : work();
}

export function identifyActor(identified: Omit<actor.Actor, 'address'>): void {
  if (isRecording()) actor.identifyActor(identified);
}

export const currentActor = actor.currentActor;
