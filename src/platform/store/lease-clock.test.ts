import { expect, test } from 'vitest';
import { describeEachDatabase } from '../../../test/support/databases.ts';
import { databaseTimeMs, leaseIsLive } from './lease-clock.ts';

describeEachDatabase('leases by the clock of the database', (open) => {
  test.each([
    ['a lease that has not ended', 'owner', 15_000, true],
    ['a lease that has ended', 'owner', 0, false],
    ['an instance that is forgotten', 'forgotten', 15_000, false],
    ['no owner', null, 15_000, false],
  ])('%s', async (_, instanceId, leftMs, isLive) => {
    const database = await open();
    const { kysely } = database;
    const text = '';
    await kysely
      .insertInto('instances')
      .values({
        ...{ id: 'owner', name: text, host: text, machine_id: text, pid: 1, process_start: text },
        ...{ version: text, base_path: text, key_digests: '[]', settings_digest: text },
        ...{ started_at: 0, lease_until: databaseTimeMs(database) },
      })
      .execute();
    await kysely
      .updateTable('instances')
      .set(({ eb }) => ({ lease_until: eb('lease_until', '+', leftMs) }))
      .execute();
    await kysely
      .insertInto('managed_processes')
      .values({ owner: 'a', pid: 1, start_time: '', started_at: 0, instance_id: instanceId })
      .execute();
    const row = await kysely
      .selectFrom('managed_processes')
      .select(leaseIsLive(database, 'managed_processes.instance_id').as('live'))
      .executeTakeFirstOrThrow();
    expect(Boolean(row.live)).toBe(isLive);
  });
});
