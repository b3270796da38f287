import { sql } from 'kysely';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { createGroup } from '../../../test/support/create-group.ts';
import { describeEachDatabase } from '../../../test/support/databases.ts';
import { explainQueryPlan } from '../../../test/support/statements.ts';
import { createGroupStore } from '../../identity/users/group-store.ts';
import { createUserStore } from '../../identity/users/user-store.ts';
import { actAs, actAsHub, identifyActor } from '../audit/actor.ts';
import { createAuditStore } from './audit-store.ts';
import { createAuditTrail } from './audit-trail.ts';

describeEachDatabase('the audit log', (open, dialect) => {
  const ada = { kind: 'user', name: 'ada', tokenId: 'token-1', address: '192.0.2.7' } as const;
  const all = { filter: {}, limit: 100 };

  test('tells who did what, from where and to whom', async () => {
    const database = await open();
    const audit = createAuditStore(database);
    await actAs(ada, () => createUserStore(database).create({ name: 'bob', isAdmin: true }));
    const { entries, next } = await audit.list(all);
    expect(next).toBeUndefined();
    expect(entries).toEqual([
      {
        id: expect.any(Number),
        at: expect.any(Date),
        count: 1,
        actor: {
          kind: 'user',
          name: 'ada',
          sessionId: undefined,
          tokenId: 'token-1',
          address: '192.0.2.7',
        },
        action: 'user.create',
        target: { kind: 'user', name: 'bob' },
        users: [],
        result: 'done',
        detail: { admin: true },
        instance: undefined,
      },
    ]);
  });

  test('has nothing of a deed that was undone, and has it of none that it cannot record', async () => {
    const database = await open();
    const audit = createAuditStore(database);
    const groups = createGroupStore(database);
    const failing = groups.createAll({ names: ['a'], memberNames: ['no-one'], origin: 'api' });
    await expect(failing).rejects.toThrow('There are no such users');
    expect((await audit.list(all)).entries).toEqual([]);

    await sql`alter table audit_arrivals rename to moved`.execute(database.kysely);
    await expect(createGroup(groups, { name: 'team' })).rejects.toThrow();
    await sql`alter table moved rename to audit_arrivals`.execute(database.kysely);
    await expect(groups.getByName('team')).rejects.toThrow('There is no such group');
  });

  test('has each of many new users, none that was there, and none without a record', async () => {
    const database = await open();
    const audit = createAuditStore(database);
    const users = createUserStore(database);
    await users.create({ name: 'old' });
    const reported: unknown[] = [];
    database.audit.onRecord((row) => reported.push(row.users));
    await Promise.all([
      actAs(ada, () => users.createMissing(['one', 'old', 'two'], { isAdmin: true })),
      users.createMissing(['three']),
    ]);
    const { entries } = await audit.list(all);
    const seen = entries.map(({ target, users, actor, detail }) => ({
      who: target?.name ?? users.join(),
      by: actor.name,
      detail,
    }));
    expect(seen.toSorted((one, other) => one.who.localeCompare(other.who))).toEqual([
      { who: 'old', by: undefined, detail: {} },
      { who: 'one,two', by: 'ada', detail: { admin: true } },
      { who: 'three', by: undefined, detail: {} },
    ]);
    expect(reported.toSorted()).toEqual(['["one","two"]', '["three"]']);

    await sql`alter table audit_arrivals rename to moved`.execute(database.kysely);
    const both = [users.createMissing(['four']), users.createMissing(['five'])];
    for (const each of await Promise.allSettled(both)) expect(each.status).toBe('rejected');
    await sql`alter table moved rename to audit_arrivals`.execute(database.kysely);
    expect(await users.findByName('four')).toBeUndefined();
    expect(await users.findByName('five')).toBeUndefined();
  });

  test('has one row of many new users, which is found by the name of each', async () => {
    const database = await open();
    const users = createUserStore(database);
    const names = Array.from({ length: 1_200 }, (_, index) => `member-${index}`);
    for (let start = 0; start < names.length; start += 300) {
      await users.createMissing([...names.slice(start, start + 300), 'member-0']);
    }
    await users.createMissing(['member-1', 'member-2']);
    const arrived = database.kysely.selectFrom('audit_arrivals').select('user_count');
    const counts = (await arrived.execute()).map(({ user_count }) => Number(user_count));
    expect(counts).toEqual([300, 300, 300, 300]);
    const audit = createAuditStore(database);
    const { entries } = await audit.list(all);
    expect(entries.toReversed().flatMap((entry) => entry.users)).toEqual(names);
    expect(await arrived.execute()).toEqual([]);
    const found = await audit.list({ filter: { target: 'member-777' }, limit: 100 });
    expect(found.entries.map(({ id }) => id)).toEqual([entries[1]?.id]);
  });

  test('is in the order of the deeds, also where the clock was ahead by a little', async () => {
    const database = await open();
    let clock = Date.now();
    const log = pino({ level: 'silent' });
    const trail = createAuditTrail({ ...database, now: () => clock, log });
    for (const [name, stepMs] of Object.entries({ one: 0, two: -5, three: -90_000 })) {
      clock += stepMs;
      await trail.recordAlone({ action: 'group.create', target: { kind: 'group', name } });
    }
    await trail.catchUp();
    const { entries } = await createAuditStore(database).list(all);
    expect(entries.map(({ target }) => target?.name)).toEqual(['two', 'one', 'three']);
    await trail.flush();
  });

  test('takes whoever is identified later on, and the hub where no one acts', async () => {
    const database = await open();
    const users = createUserStore(database);
    await actAs({ kind: 'anonymous', address: '192.0.2.9' }, async () => {
      identifyActor({ kind: 'service', name: 'culler' });
      await users.create({ name: 'one' });
      await actAsHub(() => users.create({ name: 'two' }));
    });
    await users.create({ name: 'three' });
    const { entries } = await createAuditStore(database).list(all);
    expect(entries.map(({ actor, target }) => [target?.name, actor.kind, actor.address])).toEqual([
      ['three', 'hub', undefined],
      ['two', 'hub', undefined],
      ['one', 'service', '192.0.2.9'],
    ]);
  });

  test('refuses to be changed, also past the hub', async () => {
    const database = await open();
    await createUserStore(database).create({ name: 'bob' });
    for (const table of ['audit_arrivals', 'audit']) {
      const change = sql`update ${sql.table(table)} set actor_name = 'eve'`;
      await expect(change.execute(database.kysely), table).rejects.toThrow();
      await database.audit.catchUp();
    }
    const { entries } = await createAuditStore(database).list(all);
    expect(entries[0]?.actor).toMatchObject({ kind: 'hub', name: undefined });
  });

  test('keeps what any database takes, and no more than a little of each', async () => {
    const database = await open();
    const name = `nul\0 ${'\u{d800}'} ${'x'.repeat(5_000)}`;
    await actAs({ ...ada, address: name }, () =>
      database.audit.recordAlone({
        action: 'access',
        result: 'refused',
        target: { kind: 'user', name },
        detail: {
          text: name,
          scopes: Array.from({ length: 5_000 }, (_, index) => index),
        },
      }),
    );
    await database.audit.recordAlone({
      action: 'access',
      detail: Object.fromEntries(
        Array.from({ length: 500 }, (_, index) => [`key-${index}`, 'value']),
      ),
    });
    const note = 'n'.repeat(1_000);
    await database.audit.recordAlone(
      { action: 'access', detail: { note } },
      { action: 'access', detail: { text: 'nul\0', name: '\u{d800}', url: '\\u0000' } },
    );
    const { entries } = await createAuditStore(database).list(all);
    expect(entries).toHaveLength(4);
    const replaced = '\u{FFFD}';
    const short = { text: `nul${replaced}`, name: replaced, url: '\\u0000' };
    expect(entries.splice(0, 2).map(({ detail }) => detail)).toEqual([short, { note }]);
    expect(entries[0]?.detail).toMatchObject({ 'key-0': 'value', and_more: 480 });
    expect(entries[1]?.target?.name).toHaveLength(255);
    expect(JSON.stringify(entries[1]).length).toBeLessThan(2_000);
    expect(entries[1]?.detail['scopes']).toHaveLength(21);
  });

  test('says what was done, and how much more, of scopes and properties beyond any length', async () => {
    const database = await open();
    const scopes = Array.from(
      { length: 100 },
      (_, index) => `read:users!user=${index}${'x'.repeat(190)}`,
    );
    const properties = Object.fromEntries(scopes.map((scope) => [scope, { list: scopes }]));
    await database.audit.recordAlone({ action: 'role.save', detail: { scopes } });
    await database.audit.recordAlone({ action: 'group.change', detail: { properties } });
    const [group, role] = (await createAuditStore(database).list(all)).entries;
    const listed = role?.detail['scopes'] as readonly string[];
    expect(listed[0]).toMatch(/^read:users!user=0x/);
    expect(listed.at(-1)).toBe(`and ${100 - listed.length + 1} more`);
    const shown = group?.detail['properties'] as Readonly<Record<string, unknown>>;
    expect(shown['and_more']).toBe(100 - Object.keys(shown).length + 1);
  });

  test('names everyone who is added to a group or taken out, however many at once', async () => {
    const database = await open();
    const names = Array.from({ length: 50 }, (_, index) => `member-${index}`);
    await createUserStore(database).createMissing(names);
    const groups = createGroupStore(database);
    await createGroup(groups, { name: 'year' });
    await groups.addMembers('year', names, 'api');
    await groups.removeMembers('year', names);
    for (const action of ['group.add_members', 'group.remove_members']) {
      const { entries } = await createAuditStore(database).list({ filter: { action }, limit: 100 });
      expect(
        entries.map(({ users }) => users),
        action,
      ).toEqual([names]);
    }
  });

  test('is found by the name of everyone in a group, in the order of time and in pages', async () => {
    const database = await open();
    const audit = createAuditStore(database);
    const names = Array.from({ length: 50 }, (_, index) => `member-${index}`);
    await createUserStore(database).createMissing(names);
    const groups = createGroupStore(database);
    // A group may have the name of one of its members.
    await groups.createAll({ names: ['year', 'member-40'], memberNames: names, origin: 'api' });
    await groups.removeMembers('year', ['member-40']);
    await groups.syncMembershipsOf('member-40', ['choir'], 'provider');
    await groups.delete('member-40');
    const filter = { target: 'member-40' };
    const { entries } = await audit.list({ filter, limit: 100 });
    const seen = entries.map(({ action, target, users }) => [action, target?.name, users.length]);
    expect(seen).toEqual([
      ['group.delete', 'member-40', 0],
      ['group.add_members', 'choir', 1],
      ['group.remove_members', 'year', 1],
      ['group.create', 'member-40', 50],
      ['group.create', 'year', 50],
      ['user.create', undefined, 50],
    ]);
    const paged: unknown[] = [];
    let after: Parameters<typeof audit.list>[0]['after'];
    do {
      const page = await audit.list({ filter, limit: 2, after });
      paged.push(...page.entries);
      after = page.next;
    } while (after !== undefined);
    expect(paged).toEqual(entries);
    const ofGroups = { ...filter, action: 'group.create', actor: 'ada' };
    expect((await audit.list({ filter: ofGroups, limit: 9 })).entries).toEqual([]);
    await audit.purge({ before: new Date(Date.now() + 86_400_000), maxRows: 0 });
    expect(await database.kysely.selectFrom('audit_users').selectAll().execute()).toEqual([]);
  });

  test('is read in pages that stay the same while more is recorded', async () => {
    const database = await open();
    const audit = createAuditStore(database);
    const groups = createGroupStore(database);
    for (const name of ['a', 'b', 'c', 'd', 'e']) await createGroup(groups, { name });
    const first = await audit.list({ filter: {}, limit: 2 });
    await createGroup(groups, { name: 'f' });
    const second = await audit.list({ filter: {}, limit: 2, after: first.next });
    const third = await audit.list({ filter: {}, limit: 2, after: second.next });
    const names = [first, second, third].map(({ entries }) =>
      entries.map(({ target }) => target?.name),
    );
    expect(names).toEqual([['e', 'd'], ['c', 'b'], ['a']]);
    expect(third.next).toBeUndefined();
  });

  test('is narrowed by actor, target, action, result and time', async () => {
    const database = await open();
    const audit = createAuditStore(database);
    const groups = createGroupStore(database);
    await actAs(ada, () => createGroup(groups, { name: 'team' }));
    await createGroup(groups, { name: 'ada' });
    await database.audit.recordAlone({ action: 'access', result: 'refused' });
    const found = async (filter: Parameters<typeof audit.list>[0]['filter']) =>
      (await audit.list({ filter, limit: 10 })).entries.map(
        ({ action, target }) => target?.name ?? action,
      );
    expect(await found({ actor: 'ada' })).toEqual(['team']);
    expect(await found({ target: 'ada' })).toEqual(['ada']);
    expect(await found({ action: 'group.create' })).toEqual(['ada', 'team']);
    expect(await found({ result: 'refused' })).toEqual(['access']);
    expect(await found({ action: 'group.create', actor: 'ada', target: 'ada' })).toEqual([]);
    const [newest] = (await audit.list(all)).entries;
    const at = newest?.at ?? new Date(0);
    expect(await found({ until: new Date(at.getTime() + 1) })).toHaveLength(3);
    expect(await found({ since: new Date(at.getTime() + 1) })).toEqual([]);
  });

  test('loses what is too old and what is too much, and nothing else', async () => {
    const database = await open();
    const audit = createAuditStore(database);
    const groups = createGroupStore(database);
    for (let index = 0; index < 6; index += 1) await createGroup(groups, { name: `g${index}` });
    const { entries } = await audit.list(all);
    const day = 86_400_000;
    expect(await audit.purge({ before: new Date(Date.now() - day), maxRows: 0 })).toBe(0);
    expect(await audit.purge({ before: new Date(0), maxRows: 4 })).toBe(2);
    expect((await audit.list(all)).entries).toEqual(entries.slice(0, 4));
    expect(await audit.purge({ before: new Date(Date.now() + day), maxRows: 0 })).toBe(4);
    expect((await audit.list(all)).entries).toEqual([]);
  });

  // PostgreSQL chooses by what its tables hold.
  if (dialect === 'sqlite') {
    test('finds every kind of page by an index', async () => {
      const database = await open();
      const order = 'order by at desc, id desc limit 101';
      for (const [where, index] of [
        ['1 = 1', 'audit_at'],
        ["actor_name = 'ada' and at >= 5", 'audit_actor'],
        ["target_name = 'ada' and (at, id) < (9, 9)", 'audit_target'],
        ["action = 'login' and at < 9", 'audit_action'],
        ["result = 'refused' and result <> 'done'", 'audit_undone'],
      ]) {
        const plan = await explainQueryPlan(
          database,
          `select * from audit where ${where} ${order}`,
        );
        expect(plan, where).toContain(`USING INDEX ${index}`);
        expect(plan, where).not.toContain('TEMP B-TREE');
      }
      const ofMany = await explainQueryPlan(
        database,
        `select audit.* from audit_users join audit on audit.id = audit_users.id
         where audit_users.name = 'ada' and (audit_users.at, audit_users.id) < (9, 9)
         order by audit_users.at desc, audit_users.id desc limit 101`,
      );
      expect(ofMany).toContain('SEARCH audit_users USING PRIMARY KEY (name=?');
      expect(ofMany).not.toContain('TEMP B-TREE');
    });
  }
});
