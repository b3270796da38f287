import { sql } from 'kysely';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { describeEachDatabase } from '../../../test/support/databases.ts';
import { actAs } from '../audit/actor.ts';
import { createAuditStaging } from './audit-staging.ts';
import { createAuditStore } from './audit-store.ts';

describeEachDatabase('the audit log of many entries alike', (open) => {
  const ada = { kind: 'user', name: 'ada', tokenId: 'token-1', address: '192.0.2.7' } as const;
  const all = { filter: {}, limit: 100 };
  const eve = (index: number) =>
    ({ kind: 'user', name: 'eve', address: `192.0.2.${index % 3}` }) as const;
  /** A token of a user: each has another id, and some another note. */
  const token = (index: number) =>
    ({
      action: 'token.create',
      target: { kind: 'token', name: 'eve', part: `token-${index}` },
      detail: { note: index % 7 === 0 ? `note ${index}` : '' },
    }) as const;

  test('makes one that has what differs, and leaves all others alone', async () => {
    const database = await open();
    const audit = createAuditStore(database);
    for (let index = 0; index < 120; index += 1) {
      await actAs(eve(index), () => database.audit.recordAlone(token(index)));
      if (index === 60) {
        await actAs(ada, () => database.audit.recordAlone(token(1000)));
        await actAs(eve(0), () =>
          database.audit.recordAlone({ ...token(1001), result: 'refused' }),
        );
      }
    }
    const { entries } = await audit.list(all);
    expect(entries.map(({ actor, result, count }) => [actor.name, result, count])).toEqual([
      ['eve', 'done', 110],
      ['eve', 'refused', 1],
      ['ada', 'done', 1],
      ...Array(10).fill(['eve', 'done', 1]),
    ]);
    const [merged] = entries;
    expect(merged).toMatchObject({ target: { part: 'token-119' }, detail: { note: 'note 119' } });
    const kept = await audit.entriesOf(merged?.id ?? 0);
    expect(kept).toHaveLength(110);
    for (const [offset, entry] of (kept ?? []).entries()) {
      const index = offset + 10;
      const { target, detail } = token(index);
      expect(entry).toMatchObject({ target, detail, count: 1 });
      expect(entry.actor).toMatchObject(eve(index));
    }
    expect(kept?.map(({ at }) => at.getTime())).toEqual(
      kept?.map(({ at }) => at.getTime()).toSorted(),
    );
    expect(await audit.entriesOf(entries.at(-1)?.id ?? 0)).toMatchObject([token(0)]);
    expect(await audit.entriesOf(0)).toBeUndefined();
  });

  test('counts each once when several instances merge at once', async () => {
    const database = await open();
    const audit = createAuditStore(database);
    await actAs(eve(0), () =>
      database.audit.recordAlone(...Array.from({ length: 300 }, (_, index) => token(index))),
    );
    const others = [1, 2, 3].map(() =>
      createAuditStaging({ ...database, log: pino({ level: 'silent' }) }).move(),
    );
    await Promise.all([audit.list(all), ...others]);
    const { entries } = await audit.list(all);
    expect(entries.reduce((sum, { count }) => sum + count, 0)).toBe(300);
    const parts: (string | undefined)[] = [];
    for (const { id } of entries) {
      for (const { target } of (await audit.entriesOf(id)) ?? []) parts.push(target?.part);
    }
    expect(new Set(parts).size).toBe(300);
  });

  test('has none that was undone', async () => {
    const database = await open();
    const audit = createAuditStore(database);
    for (let index = 0; index < 30; index += 1) {
      const work = database.transaction(async (transaction) => {
        await database.audit.record(transaction, token(index));
        if (index % 2 === 0) throw new Error('undone');
      });
      await work.catch(() => undefined);
    }
    const { entries } = await audit.list(all);
    expect(entries.reduce((sum, { count }) => sum + count, 0)).toBe(15);
  });

  test('makes several where one would be too long', async () => {
    const database = await open();
    const audit = createAuditStore(database);
    const long = (index: number) => ({
      ...token(index),
      detail: {
        note: `${index} ${'x'.repeat(190)}`,
        name: 'y'.repeat(190),
        url: 'z'.repeat(190),
      },
    });
    await actAs(eve(0), () =>
      database.audit.recordAlone(...Array.from({ length: 900 }, (_, index) => long(index))),
    );
    const merged = (await audit.list(all)).entries.filter(({ count }) => count > 1);
    expect(merged.length).toBeGreaterThan(1);
    expect(merged.reduce((sum, { count }) => sum + count, 0)).toBe(890);
    const lengths = await database.kysely
      .selectFrom('audit')
      .select(sql<number>`length(repeats)`.as('length'))
      .where('entry_count', '>', 1)
      .execute();
    expect(Math.max(...lengths.map(({ length }) => length))).toBeLessThan(300_000);
  });

  test('purges those that were merged for those that are, and nothing else for them', async () => {
    const database = await open();
    const audit = createAuditStore(database);
    await actAs(ada, () => database.audit.recordAlone(token(1000)));
    for (let round = 0; round < 3; round += 1) {
      const names = Array.from({ length: 60 }, (_, index) => token(round * 100 + index));
      await actAs(eve(0), () => database.audit.recordAlone(...names));
      await audit.list(all);
    }
    expect(await audit.purge({ before: new Date(0), maxRows: 110 })).toBe(1);
    const { entries } = await audit.list(all);
    expect(entries.filter(({ count }) => count > 1)).toHaveLength(2);
    expect(entries.at(-1)?.actor.name).toBe('ada');
  });
});
