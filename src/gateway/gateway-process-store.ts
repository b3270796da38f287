import type { ProcessIdentity } from '../processes/process-identity.ts';
import type { HubDatabase } from '../store/database.ts';

/** The gateways that the hub of this name started, so that the next one finds those it left behind. */
export interface GatewayProcessStore {
  remember(slot: number, identity: ProcessIdentity): Promise<void>;
  forget(slot: number): Promise<void>;
  list(): Promise<readonly { readonly slot: number; readonly identity: ProcessIdentity }[]>;
}

export function createGatewayProcessStore(
  { kysely }: Pick<HubDatabase, 'kysely'>,
  instanceName: string,
): GatewayProcessStore {
  const ownerPrefix = `gateway:${instanceName}:`;
  return {
    async remember(slot, { pid, startTime }) {
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
      const rows = await kysely
        .selectFrom('managed_processes')
        .selectAll()
        .where('owner', 'like', 'gateway:%')
        .execute();
      return rows.flatMap(({ owner, pid, start_time: startTime }) =>
        owner.startsWith(ownerPrefix)
          ? [{ slot: Number(owner.slice(ownerPrefix.length)), identity: { pid, startTime } }]
          : [],
      );
    },
  };
}
