import { pino } from 'pino';
import { expect, test, vi } from 'vitest';
import { createGroup } from '../../../test/support/create-group.ts';
import { describeEachDatabase } from '../../../test/support/databases.ts';
import { createGroupStore } from '../../identity/users/group-store.ts';
import { HubError } from '../errors.ts';
import { createAuditStaging } from './audit-staging.ts';
import { createAuditStore } from './audit-store.ts';

describeEachDatabase('what arrives for the audit log', (open) => {
  const all = { filter: {}, limit: 100 };

  test('is moved whole, however many rows and users wait', async () => {
    const database = await open();
    const audit = createAuditStore(database);
    const many = Array.from({ length: 6_000 }, (_, index) => `member-${index}`);
    const target = { kind: 'group', name: 'year' } as const;
    await database.audit.recordAlone(
      ...Array.from(
        { length: 3 },
        () => ({ action: 'group.create', target, users: many }) as const,
      ),
      ...Array.from({ length: 2_100 }, (_, index) => {
        const other = { ...target, name: `g${index}` };
        return { action: 'group.delete', target: other } as const;
      }),
    );
    const { entries } = await audit.list({ filter: {}, limit: 3_000 });
    expect(entries).toHaveLength(2_103);
    const ofOne = await audit.list({ filter: { target: 'member-5999' }, limit: 100 });
    expect(ofOne.entries).toEqual(entries.slice(-3));
  });

  test('is moved from where it arrives, each row once, by several at once too', async () => {
    const database = await open();
    const groups = createGroupStore(database);
    const names = Array.from({ length: 30 }, (_, index) => `g${index}`);
    const arrived = () => database.kysely.selectFrom('audit_arrivals').select('entry').execute();
    await Promise.all(names.map((name) => createGroup(groups, { name })));
    expect(await arrived()).toHaveLength(30);
    const read = () => createAuditStore(database).list(all);
    const others = Array.from({ length: 3 }, () =>
      createAuditStaging({ ...database, log: pino({ level: 'silent' }) }).move(),
    );
    const [{ entries }] = await Promise.all([read(), read(), ...others]);
    expect(entries.map(({ target }) => target?.name).toSorted()).toEqual(names.toSorted());
    expect(await arrived()).toEqual([]);
    expect((await read()).entries).toEqual(entries);
  });

  test('is moved soon after, also when no one reads it', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      const database = await open();
      const count = async (table: 'audit' | 'audit_arrivals') =>
        (await database.kysely.selectFrom(table).select('id').execute()).length;
      for (const name of ['a', 'b']) await createGroup(createGroupStore(database), { name });
      expect([await count('audit_arrivals'), await count('audit')]).toEqual([2, 0]);
      vi.advanceTimersByTime(60_000);
      while ((await count('audit_arrivals')) > 0) await new Promise(setImmediate);
      expect(await count('audit')).toBe(2);
    } finally {
      vi.useRealTimers();
    }
  });

  test('is read, but for what came last, where nothing can be written', async () => {
    const database = await open();
    const groups = createGroupStore(database);
    await createGroup(groups, { name: 'before' });
    await database.audit.catchUp();
    await createGroup(groups, { name: 'after' });
    const catchUp = () => Promise.reject(new HubError('storage_unavailable', 'The disk is full.'));
    const onFullDisk = { ...database, audit: { ...database.audit, catchUp } };
    const { entries } = await createAuditStore(onFullDisk).list(all);
    expect(entries.map(({ target }) => target?.name)).toEqual(['before']);
  });
});
