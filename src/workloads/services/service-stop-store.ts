import { currentActor } from '../../platform/audit/actor.ts';
import type { HubDatabase } from '../../platform/store/database.ts';

/** That a service was stopped by hand. */
export interface ServiceStop {
  readonly name: string;
  /** Of what was stopped: a service that is another one by now is not meant. */
  readonly digest: string;
  /** Name of the user or service that stopped it, where one did. */
  readonly by: string | undefined;
  readonly at: Date;
}

/** The services that stay stopped, for all instances. */
export interface ServiceStopStore {
  list(): Promise<readonly ServiceStop[]>;
  /** Has a service stopped, and stay so, in the name of the current actor. */
  add(name: string, digest: string): Promise<void>;
  /** Has it run again; nothing changes where it was not stopped. */
  remove(name: string): Promise<void>;
  /** Forgets a stop that was not of the service that there is now. */
  forget(stop: ServiceStop): Promise<void>;
}

export function createServiceStopStore(
  database: Pick<HubDatabase, 'kysely' | 'transaction' | 'announceChange' | 'audit' | 'now'>,
): ServiceStopStore {
  const { audit } = database;
  const targetOf = (name: string) => ({ kind: 'service', name }) as const;
  const announce = () => database.announceChange({ kind: 'services_changed' });

  return {
    async list() {
      const rows = await database.kysely.selectFrom('service_stops').selectAll().execute();
      return rows.map((row) => ({
        name: row.name,
        digest: row.definition_digest,
        by: row.stopped_by ?? undefined,
        at: new Date(row.stopped_at),
      }));
    },

    async add(name, digest) {
      const values = {
        definition_digest: digest,
        stopped_by: currentActor()?.name ?? null,
        stopped_at: database.now(),
      };
      await database.transaction(async (transaction) => {
        const changed = await transaction
          .insertInto('service_stops')
          .values({ name, ...values })
          .onConflict((conflict) =>
            conflict
              .column('name')
              .doUpdateSet(values)
              .where('service_stops.definition_digest', '<>', digest),
          )
          .returning('name')
          .executeTakeFirst();
        if (changed === undefined) return;
        await audit.record(transaction, { action: 'service.stop', target: targetOf(name) });
      });
      announce();
    },

    async remove(name) {
      await database.transaction(async (transaction) => {
        const removed = await transaction
          .deleteFrom('service_stops')
          .where('name', '=', name)
          .returning('name')
          .executeTakeFirst();
        if (removed === undefined) return;
        await audit.record(transaction, { action: 'service.start', target: targetOf(name) });
      });
      announce();
    },

    async forget({ name, digest }) {
      await database.kysely
        .deleteFrom('service_stops')
        .where('name', '=', name)
        .where('definition_digest', '=', digest)
        .execute();
    },
  };
}
