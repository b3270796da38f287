import { AsyncLocalStorage } from 'node:async_hooks';
import type { AuditAction } from './actions.ts';
import type { ActorKind, AuditTarget } from './audit-event.ts';

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

/** The operation that is attempted, for the audit log when it is refused or fails. */
export interface Attempt {
  readonly operation: string;
  /** Undefined for what is not recorded. */
  readonly action: AuditAction | undefined;
  readonly target: AuditTarget | undefined;
}

const actors = new AsyncLocalStorage<{ actor: Actor; attempt?: Attempt }>();

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

/** Says what is attempted now, by whichever entrance. */
export function setAttempt(attempt: Attempt): void {
  const current = actors.getStore();
  if (current !== undefined) current.attempt = attempt;
}

/** What is attempted now; undefined before an operation is performed. */
export function currentAttempt(): Attempt | undefined {
  return actors.getStore()?.attempt;
}

/** Who acts now; undefined where no one does but the program itself. */
export function currentActor(): Actor | undefined {
  return actors.getStore()?.actor;
}
