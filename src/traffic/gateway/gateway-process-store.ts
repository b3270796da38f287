import type { ProcessIdentity } from '../../platform/process-table/process-table.ts';
import type { HubDatabase } from '../../platform/store/database.ts';

/** The gateways that the hub of this name started, so that the next one finds those it left behind. */
export interface GatewayProcessStore {
  record(slot: number, identity: ProcessIdentity): Promise<void>;
  forget(slot: number): Promise<void>;
  list(): Promise<readonly { readonly slot: number; readonly identity: ProcessIdentity }[]>;
}

/** A gateway that a hub started, and did not end as far as it was written down. */
export interface StartedGateway {
  readonly instanceName: string;
  readonly slot: number;
  readonly identity: ProcessIdentity;
  readonly startedAt: Date;
}

const ownerOfGateway = /^gateway:(.*):(\d+)$/;

/** The gateways that all hubs on a database started, by hub. */
export async function listStartedGateways({
  kysely,
}: Pick<HubDatabase, 'kysely'>): Promise<readonly StartedGateway[]> {
  const rows = await kysely
    .selectFrom('managed_processes')
    .selectAll()
    .where('owner', 'like', 'gateway:%')
    .orderBy('owner')
    .execute();
  return rows.flatMap(({ owner, pid, start_time: startTime, started_at }) => {
    const [, instanceName, slot] = ownerOfGateway.exec(owner) ?? [];
    if (instanceName === undefined) return [];
    const startedAt = new Date(started_at);
    return [{ instanceName, slot: Number(slot), identity: { pid, startTime }, startedAt }];
  });
}

export function createGatewayProcessStore(
  database: Pick<HubDatabase, 'kysely'>,
  instanceName: string,
): GatewayProcessStore {
  const { kysely } = database;
  const ownerPrefix = `gateway:${instanceName}:`;
  return {
    async record(slot, { pid, startTime }) {
      const values = { pid, start_time: startTime, started_at: Date.now() };
      await kysely
        .insertInto('managed_processes')
        .values({ owner: ownerPrefix + slot, ...values })
        .onConflict((conflict) => conflict.column('owner').doUpdateSet(values))
        .execute();
    },

    async forget(slot) {
      await kysely
        .deleteFrom('managed_processes')
        .where('owner', '=', ownerPrefix + slot)
        .execute();
    },

    async list() {
      const all = await listStartedGateways(database);
      return all.filter((each) => each.instanceName === instanceName);
    },
  };
}
