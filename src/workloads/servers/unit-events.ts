import type { HubDatabase } from '../../platform/store/database.ts';
import type { SpawnedServer } from '../../plugin/host/spawner.ts';
import type { Server } from './server.ts';

/** Writes in a transaction that a run has ended. */
export type WriteEnd = (on: HubDatabase['kysely']) => Promise<unknown>;

/** What happens outside the unit when a server comes and goes. */
export interface UnitEvents {
  /** The server answers: open its route. Returns its public path. */
  onReady(server: Server, spawned: SpawnedServer): string;
  /** The server is going or gone: close its route at once. */
  onUnavailable(server: Server): void;
  /** The server is gone for good: revoke its token, run the hooks. */
  onGone(server: Server): Promise<void>;
  /** A run ended at a time of the monotonic clock: has that written, in one transaction with what it used. */
  endRun(server: Server, endedAtMs: number, write: WriteEnd): Promise<void>;
  onStartEnded(outcome: 'ready' | 'failed' | 'cancelled', seconds: number): void;
}
