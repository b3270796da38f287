import type { Phrase } from '../../platform/texts/text.ts';
import type { ProcessUsage } from '../../spawning/processes/process-usage.ts';
import type { Service } from './service.ts';

/**
 * Where a service is in its life.
 *
 * A managed one goes `stopped` → `starting` → `ready` ⇄ `unhealthy`; when it ends, `restarting`
 * (waiting) → `starting`. When that happens repeatedly it is `crash_looping`, ready or not, until a
 * run has lasted.
 * An external one is `starting` while it is first asked, then `ready` or `unhealthy`.
 */
export const serviceStates = [
  'stopped',
  'starting',
  'ready',
  'unhealthy',
  'restarting',
  'crash_looping',
  'stopping',
] as const;

export type ServiceState = (typeof serviceStates)[number];

/** How a run of a managed service ended. */
export interface ServiceExit {
  readonly code: number | null;
  readonly signal: string | null;
  /** Processes it left behind, which the hub ended. */
  readonly leftBehind: number;
  readonly ranForMs: number;
  readonly at: Date;
}

/** How a service is, for the API, the pages and monitoring. */
export interface ServiceStatus {
  readonly name: string;
  readonly kind: 'managed' | 'external';
  readonly state: ServiceState;
  readonly isReady: boolean;
  /** Since when it is in this state, as far as that is known. */
  readonly since: Date | undefined;
  readonly pid: number | undefined;
  /** When the present run began. */
  readonly startedAt: Date | undefined;
  /** For how long it has lasted, whatever the clock was set to meanwhile. */
  readonly uptimeMs: number | undefined;
  /** When the next start is due, while it waits for one. */
  readonly nextStartAt: Date | undefined;
  /** Restarts since the hub started. */
  readonly restarts: number;
  readonly lastExit: ServiceExit | undefined;
  /** What is or was last wrong; cleared when the service is ready. */
  readonly lastError: Phrase | undefined;
  readonly usage: ProcessUsage | undefined;
  /** How long an external one took for its last good answer. */
  readonly answeredInMs?: number | undefined;
}

/** How a service is, and where. */
export interface PlacedStatus extends ServiceStatus {
  /** Name of the instance that runs it; undefined while none does, and for an external one. */
  readonly instance: string | undefined;
  /** Whether it is watched, and its output kept, by this instance. */
  readonly isHere: boolean;
  /** Set for one that was stopped by hand and stays so: since when, and by whom where that is known. */
  readonly stopped: { readonly at: Date; readonly by: string | undefined } | undefined;
}

/** One service in the hub's care, managed or external. */
export interface SupervisedService {
  readonly service: Service;
  /** Begins; returns at once, and never throws. */
  start(): void;
  /** Ends it within its grace, or a shorter one; afterwards it can be discarded. */
  stop(options?: { readonly maxGraceMs?: number }): Promise<void>;
  /** Starts it again, at once, and forgets earlier failures. An external one is probed again. */
  restart(): void;
  /** Takes over changes that need no restart. */
  update(service: Service): void;
  status(usage: ProcessUsage | undefined): ServiceStatus;
}
