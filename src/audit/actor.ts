import { AsyncLocalStorage } from 'node:async_hooks';
import type { ActorKind } from './deed.ts';

/** Who does what is recorded: known to all that a request or command calls. */
export interface Actor {
  readonly kind: ActorKind;
  /** Of the user or service; of the account on the machine for a command. */
  readonly name?: string;
  /** Login behind the request. */
  readonly sessionId?: string;
  /** Id of the token that was presented. */
  readonly tokenId?: string;
  /** Address of the client. */
  readonly address?: string;
}

const actors = new AsyncLocalStorage<{ actor: Actor }>();

/** Does work on behalf of an actor; everything it calls is recorded as theirs. */
export function actAs<Result>(actor: Actor, work: () => Result): Result {
  return actors.run({ actor }, work);
}

/** Does work that is the hub's own, though a request may have set it off. */
export function actAsHub<Result>(work: () => Result): Result {
  return actors.exit(work);
}

/** Says who it is, once that is found out; the address stays. */
export function identifyActor(identified: Omit<Actor, 'address'>): void {
  const current = actors.getStore();
  if (current === undefined) return;
  const { address } = current.actor;
  current.actor = { ...identified, ...(address !== undefined && { address }) };
}

/** Who acts now; undefined where no one does but the program itself. */
export function currentActor(): Actor | undefined {
  return actors.getStore()?.actor;
}
