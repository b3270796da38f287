import { sql } from 'kysely';
import type { HubDatabase } from '../../platform/store/database.ts';
import { databaseTimeMs, leaseIsLive } from '../../platform/store/lease-clock.ts';

/** The operation by which an instance tells what a service that it runs has written. */
export const serviceOutputOperation = 'service-output';

/** An instance that runs services. */
export interface ServiceHost {
  readonly id: string;
  readonly name: string;
  readonly machineId: string;
}

/** Who runs a managed service. */
export interface ServiceOwner {
  readonly name: string;
  readonly instanceId: string;
  /** Undefined for one that is not entered any more. */
  readonly host: ServiceHost | undefined;
  /** How long its owner surely has it still; 0 for one that is gone. */
  readonly leaseLeftMs: number;
  /** Undefined where the token is in the configuration. */
  readonly tokenHash: string | undefined;
  /** As the owner has told it. */
  readonly status: string | undefined;
}

/** What a claim brought to light. */
export interface ServiceClaim {
  /** Of the processes that a former owner, which did not give it up, may have left running. */
  readonly formerTag: string | undefined;
}

/** The owners of the managed services, for one instance. */
export interface ServiceOwnerStore {
  /**
   * Takes a service that is free, this instance's already, or of an instance without lease; undefined when
   * another one has it, or this one has no lease itself. Of several that try, one succeeds.
   */
  claim(name: string, tokenHash: string | undefined): Promise<ServiceClaim | undefined>;
  /** The instance with an id, as far as it is entered. */
  findHost(id: string): Promise<ServiceHost | undefined>;
  /** Notes by what the processes are found, before they are begun; false when it has another owner now. */
  mark(name: string, tag: string): Promise<boolean>;
  /** Tells the others how it is; false when it has another owner now. */
  report(name: string, status: string): Promise<boolean>;
  /** Gives it up, with nothing left running. */
  release(name: string): Promise<void>;
  list(): Promise<readonly ServiceOwner[]>;
}

export function createServiceOwnerStore(
  database: HubDatabase,
  instanceId: string,
): ServiceOwnerStore {
  const { kysely } = database;

  async function change(
    name: string,
    values: { readonly tag: string } | { readonly status: string },
  ): Promise<boolean> {
    const { numUpdatedRows } = await kysely
      .updateTable('service_owners')
      .set(values)
      .where('name', '=', name)
      .where('instance_id', '=', instanceId)
      .executeTakeFirst();
    return numUpdatedRows > 0n;
  }

  return {
    async claim(name, tokenHash) {
      // A process that was held up must not take what others have had to give up on.
      const own = kysely
        .selectFrom('instances')
        .where('instances.id', '=', instanceId)
        .where(leaseIsLive(database, 'instances.id'))
        .select([
          sql<string>`${name}`.as('name'),
          'instances.id as instance_id',
          sql<string | null>`${tokenHash ?? null}`.as('token_hash'),
        ]);
      const taken = await kysely
        .insertInto('service_owners')
        .columns(['name', 'instance_id', 'token_hash'])
        .expression(own)
        .onConflict((conflict) =>
          conflict
            .column('name')
            .doUpdateSet((row) => ({
              instance_id: row.ref('excluded.instance_id'),
              token_hash: row.ref('excluded.token_hash'),
              status: null,
            }))
            .where(({ eb, or, not }) =>
              or([
                eb('service_owners.instance_id', '=', instanceId),
                not(leaseIsLive(database, 'service_owners.instance_id')),
              ]),
            ),
        )
        .returning('tag')
        .executeTakeFirst();
      return taken === undefined ? undefined : { formerTag: taken.tag ?? undefined };
    },

    async findHost(id) {
      const row = await kysely
        .selectFrom('instances')
        .select(['id', 'name', 'machine_id'])
        .where('id', '=', id)
        .executeTakeFirst();
      return row && { id: row.id, name: row.name, machineId: row.machine_id };
    },

    mark: (name, tag) => change(name, { tag }),
    report: (name, status) => change(name, { status }),

    async release(name) {
      await kysely
        .deleteFrom('service_owners')
        .where('name', '=', name)
        .where('instance_id', '=', instanceId)
        .execute();
    },

    async list() {
      const rows = await kysely
        .selectFrom('service_owners')
        .leftJoin('instances', 'instances.id', 'service_owners.instance_id')
        .select(['service_owners.name', 'instance_id', 'token_hash', 'status', 'lease_until'])
        .select(['instances.name as host_name', 'machine_id'])
        .select(databaseTimeMs(database).as('now'))
        .execute();
      return rows.map((row) => ({
        name: row.name,
        instanceId: row.instance_id,
        host:
          row.host_name === null || row.machine_id === null
            ? undefined
            : { id: row.instance_id, name: row.host_name, machineId: row.machine_id },
        leaseLeftMs: Math.max(0, (row.lease_until ?? 0) - row.now),
        tokenHash: row.token_hash ?? undefined,
        status: row.status ?? undefined,
      }));
    },
  };
}
