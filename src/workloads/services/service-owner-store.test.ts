import { expect, test } from 'vitest';
import { describeEachDatabase } from '../../../test/support/databases.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import { createServiceOwnerStore } from './service-owner-store.ts';

/** Enters an instance whose lease lasts so long from now. */
async function enter(database: HubDatabase, id: string, leaseMs: number): Promise<void> {
  await database.kysely
    .insertInto('instances')
    .values({
      id,
      name: id,
      url: null,
      host: id,
      machine_id: id,
      pid: 1,
      process_start: '',
      version: '1',
      base_path: '/',
      key_digests: '[]',
      settings_digest: '',
      started_at: 0,
      lease_until: Date.now() + leaseMs,
    })
    .execute();
}

async function setLease(database: HubDatabase, id: string, leaseMs: number): Promise<void> {
  await database.kysely
    .updateTable('instances')
    .set({ lease_until: Date.now() + leaseMs })
    .where('id', '=', id)
    .execute();
}

describeEachDatabase('the owners of services', (open) => {
  async function openWith(...ids: string[]) {
    const database = await open();
    for (const id of ids) await enter(database, id, 15_000);
    return { database, stores: ids.map((id) => createServiceOwnerStore(database, id)) };
  }

  test('of many claims at once one succeeds', async () => {
    const ids = Array.from({ length: 20 }, (_, index) => `i-${index}`);
    const { stores } = await openWith(...ids);
    const claims = await Promise.all(stores.map((store) => store.claim('app', 'hash')));
    expect(claims.filter((claim) => claim !== undefined)).toHaveLength(1);
    const winner = ids[claims.findIndex((claim) => claim !== undefined)];
    expect(await stores[0]?.list()).toMatchObject([{ name: 'app', instanceId: winner }]);
  });

  test('is taken only from an instance that has lost the lease, with the tag of what may still run', async () => {
    const { database, stores } = await openWith('a', 'b', 'c');
    const [a, b, c] = stores as [(typeof stores)[0], (typeof stores)[0], (typeof stores)[0]];
    expect(await a.claim('app', 'hash of a')).toEqual({ formerTag: undefined });
    expect(await a.mark('app', 'tag of a')).toBe(true);
    expect(await a.report('app', '{"state":"ready"}')).toBe(true);
    expect(await b.claim('app', 'hash of b')).toBeUndefined();
    expect(await b.mark('app', 'tag of b')).toBe(false);
    await b.release('app');
    expect(await b.list()).toMatchObject([
      { instanceId: 'a', tokenHash: 'hash of a', status: '{"state":"ready"}' },
    ]);
    expect((await b.list())[0]?.leaseLeftMs).toBeGreaterThan(5_000);

    await setLease(database, 'a', -1);
    expect((await b.list())[0]?.leaseLeftMs).toBe(0);
    const taken = await Promise.all([b.claim('app', 'hash of b'), c.claim('app', 'hash of c')]);
    expect(taken.filter((claim) => claim !== undefined)).toEqual([{ formerTag: 'tag of a' }]);
    expect(await a.report('app', '{"state":"ready"}')).toBe(false);
    const [{ status } = {}] = await a.list();
    expect(status).toBeUndefined();
  });

  test('who has no lease takes nothing, though it is free', async () => {
    const { database, stores } = await openWith('a', 'b');
    await setLease(database, 'a', -1);
    expect(await stores[0]?.claim('app', undefined)).toBeUndefined();
    expect(await stores[1]?.claim('app', undefined)).toEqual({ formerTag: undefined });
  });

  test('who has it may take it once more, and gives it up for the others', async () => {
    const { stores } = await openWith('a', 'b');
    await stores[0]?.claim('app', 'first');
    expect(await stores[0]?.claim('app', 'second')).toEqual({ formerTag: undefined });
    expect(await stores[0]?.list()).toMatchObject([{ tokenHash: 'second' }]);
    await stores[0]?.release('app');
    expect(await stores[0]?.list()).toEqual([]);
    expect(await stores[1]?.claim('app', undefined)).toEqual({ formerTag: undefined });
  });

  test('an owner that is not entered any more is gone', async () => {
    const { database, stores } = await openWith('a', 'b');
    await stores[0]?.claim('app', undefined);
    await database.kysely.deleteFrom('instances').where('id', '=', 'a').execute();
    expect((await stores[1]?.list())?.[0]?.leaseLeftMs).toBe(0);
    expect(await stores[1]?.claim('app', undefined)).toEqual({ formerTag: undefined });
  });
});
