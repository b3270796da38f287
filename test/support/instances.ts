import type { InstanceLease } from '../../src/cluster/instances/instance-lease.ts';
import type { HubDatabase } from '../../src/platform/store/database.ts';

/** Enters an instance with a lease that lasts until it is ended. */
export async function enterInstance(
  { kysely }: HubDatabase,
  instance: { readonly id: string; readonly machineId?: string },
): Promise<void> {
  await kysely
    .insertInto('instances')
    .values({
      id: instance.id,
      name: `name of ${instance.id}`,
      url: null,
      host: 'host',
      machine_id: instance.machineId ?? 'machine',
      pid: 1,
      process_start: 'start',
      version: '1.0.0',
      base_path: '/',
      key_digests: '[]',
      settings_digest: 'settings',
      started_at: 0,
      lease_until: 8_640_000_000_000_000,
    })
    .execute();
}

/** Ends the lease of an instance, as time does; 0 has it run again. */
export async function endLease(
  { kysely }: HubDatabase,
  id: string,
  until = new Date('2026-01-02T03:04:05Z'),
): Promise<void> {
  await kysely
    .updateTable('instances')
    .set({ lease_until: until.getTime() })
    .where('id', '=', id)
    .execute();
}

/** A lease in the hands of a test. */
export interface HeldLease
  extends Pick<
    InstanceLease,
    'id' | 'name' | 'machineId' | 'isHeld' | 'isHeldSince' | 'onLost' | 'onRegained'
  > {
  setHeld(isHeld: boolean): void;
}

export function createHeldLease(id: string, machineId = 'machine'): HeldLease {
  const regained = new Set<() => void>();
  const lost = new Set<() => void>();
  let held = true;
  let heldFromMs = Number.NEGATIVE_INFINITY;
  return {
    id,
    name: `name of ${id}`,
    machineId,
    isHeld: () => held,
    isHeldSince: (ms) => held && heldFromMs <= ms,
    onLost: (listener) => {
      lost.add(listener);
      return () => lost.delete(listener);
    },
    onRegained: (listener) => {
      regained.add(listener);
      return () => regained.delete(listener);
    },
    setHeld(isHeld) {
      if (isHeld && !held) heldFromMs = performance.now();
      held = isHeld;
      for (const listener of isHeld ? regained : lost) listener();
    },
  };
}
