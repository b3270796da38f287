import { expect, test } from 'vitest';
import { createGroup } from '../../../test/support/create-group.ts';
import { describeEachDatabase } from '../../../test/support/databases.ts';
import { createGroupStore } from '../../identity/users/group-store.ts';
import { createUserStore } from '../../identity/users/user-store.ts';
import { createAuditStore } from '../../platform/store/audit-store.ts';
import { createServerStore } from '../servers/server-store.ts';
import type { Share } from './share.ts';
import { createShareCodeStore } from './share-code-store.ts';
import { createShareStore } from './share-store.ts';

const page = { offset: 0, limit: 100 };
const inAnHour = () => new Date(Date.now() + 3_600_000);

describeEachDatabase('the stores of shares', (open) => {
  async function openWorld() {
    const database = await open();
    const users = createUserStore(database);
    const groups = createGroupStore(database);
    const servers = createServerStore(database);
    const [alice, bob] = [
      await users.create({ name: 'alice' }),
      await users.create({ name: 'bob' }),
    ];
    const server = await servers.ensure(alice.id, 'lab');
    return {
      ...{ database, users, groups, servers, alice, bob, server },
      shares: createShareStore(database),
      codes: createShareCodeStore(database),
      toBob: { kind: 'user', id: bob.id } as const,
    };
  }

  test('of many who share at once, all scopes are in the one share', async () => {
    const { shares, server, toBob } = await openWorld();
    const names = Array.from({ length: 8 }, (_, index) => `custom:${index}`);
    await Promise.all(names.map((name) => shares.grant(server, toBob, [name])));
    const { items, total } = await shares.list({ kind: 'server', serverId: server.id }, page);
    expect([total, items[0]?.scopeNames]).toEqual([1, names]);
    await Promise.all(names.slice(1).map((name) => shares.revoke(server, toBob, [name])));
    expect((await shares.find(server.id, toBob))?.scopeNames).toEqual(['custom:0']);
    expect(await shares.revoke(server, toBob)).toBe(true);
    expect(await shares.revoke(server, toBob)).toBe(false);
  });

  test('shared and ended at once, what came last holds, as the audit log says', async () => {
    const { database, shares, server, toBob } = await openWorld();
    const audit = createAuditStore(database);
    for (let round = 0; round < 6; round += 1) {
      const share = () => shares.grant(server, toBob, ['access:servers']);
      const end = () => shares.revoke(server, toBob);
      if (round % 2 === 1) await share();
      const [, isEnded] = await Promise.all(
        round % 3 === 0 ? [share(), end()] : [end(), share()].toReversed(),
      );
      const { entries } = await audit.list({ filter: { target: 'alice' }, limit: 2 });
      const isShared = (await shares.find(server.id, toBob)) !== undefined;
      expect([round, isShared]).toEqual([round, entries[0]?.action === 'share.grant']);
      // Told that there was nothing to end, it is shared; else both were done.
      if (isEnded === false) expect(isShared).toBe(true);
      else expect(entries.map(({ action }) => action)).toContain('share.revoke');
      if (isShared) await shares.revoke(server, toBob);
    }
  });

  test('what is shared goes with the server, the user, the group and the membership', async () => {
    const { shares, groups, servers, users, server, bob, toBob } = await openWorld();
    const given = () => shares.scopesGivenTo('bob');
    const access = ['access:servers'];
    const { id } = await createGroup(groups, { name: 'crew' });
    await groups.addMembers('crew', ['bob'], 'api');
    await shares.grant(server, { kind: 'group', id }, access);
    expect(await given()).toEqual(['access:servers!server=alice/lab']);
    await groups.removeMembers('crew', ['bob']);
    expect(await given()).toEqual([]);
    await groups.addMembers('crew', ['bob'], 'api');
    await groups.delete('crew');
    expect(await given()).toEqual([]);
    await shares.grant(server, toBob, access);
    await servers.delete(server.id);
    expect(await given()).toEqual([]);
    const again = await servers.ensure(server.userId, 'lab');
    expect(await given()).toEqual([]);
    await shares.grant(again, toBob, access);
    await users.delete(bob.id);
    const { total } = await shares.list({ kind: 'owner', userId: server.userId }, page);
    expect(total).toBe(0);
  });

  test('a page of shares goes on where the one before it ended, whoever loses one meanwhile', async () => {
    const { database, shares, users, server } = await openWorld();
    const guests: string[] = [];
    for (const index of [0, 1, 2, 3, 4]) {
      const { id } = await users.create({ name: `guest-${index}` });
      await shares.grant(server, { kind: 'user', id }, ['access:servers']);
      guests.push(id);
    }
    // Made at the same time, they are told apart by their ids.
    await database.kysely.updateTable('shares').set({ created_at: 5 }).execute();
    const filter = { kind: 'server', serverId: server.id } as const;
    const all = (await shares.list(filter, page)).items;
    const names = (items: readonly Share[]) => items.map(({ recipient }) => recipient.name);
    const at = (side: 'after' | 'before', index: number) =>
      shares.list(filter, { offset: 0, limit: 2, edge: { side, key: all[index]?.key ?? '' } });
    const owned = (index: number) => ({
      kind: 'user' as const,
      id: guests[Number(all[index]?.recipient.name.at(-1))] ?? '',
    });
    await shares.revoke(server, owned(0));
    await shares.revoke(server, owned(1));
    const second = await at('after', 1);
    expect(names(second.items)).toEqual(names(all.slice(2, 4)));
    expect(second).toMatchObject({ isFirst: false, isLast: false, total: 3 });
    expect(names((await at('before', 4)).items)).toEqual(names(all.slice(2, 4)));
    expect((await at('after', 3)).isLast).toBe(true);
    const edge = { side: 'after', key: 'no key' } as const;
    const whole = await shares.list(filter, { ...page, edge });
    expect(names(whole.items)).toEqual(names(all.slice(2)));
  });

  test('what is no longer there is not shared, and has no code', async () => {
    const { shares, codes, servers, server, toBob } = await openWorld();
    await servers.delete(server.id);
    const gone = expect.objectContaining({ code: 'not_found' });
    await expect(shares.grant(server, toBob, ['access:servers'])).rejects.toEqual(gone);
    const options = { scopeNames: ['access:servers'], expiresAt: inAnHour() };
    await expect(codes.create(server, options)).rejects.toEqual(gone);
    const other = await servers.ensure(server.userId, 'other');
    const nobody = { kind: 'group', id: 'no-such-group' } as const;
    await expect(shares.grant(other, nobody, ['access:servers'])).rejects.toEqual(gone);
  });

  test('a code works for all at once until it is deleted or has expired', async () => {
    const { codes, shares, users, server } = await openWorld();
    const options = { scopeNames: ['access:servers'], expiresAt: inAnHour() };
    const { code, shareCode } = await codes.create(server, options);
    const guests = await Promise.all(
      Array.from({ length: 5 }, (_, index) => users.create({ name: `guest-${index}` })),
    );
    await Promise.all(guests.map(({ id }) => codes.exchange(code, id)));
    const found = await codes.find(code);
    expect(found).toMatchObject({ id: shareCode.id, exchangeCount: 5 });
    expect(found?.lastExchangedAt).toBeInstanceOf(Date);
    const { total } = await shares.list({ kind: 'server', serverId: server.id }, page);
    expect(total).toBe(5);
    expect(await codes.delete('another-server', { code })).toBe(false);
    expect(await codes.delete(server.id, { code })).toBe(true);
    expect(await codes.exchange(code, guests[0]?.id ?? '')).toBeUndefined();

    const past = { ...options, expiresAt: new Date(Date.now() - 60_000) };
    const expired = await codes.create(server, past);
    expect(await codes.find(expired.code)).toBeUndefined();
    expect(await codes.exchange(expired.code, guests[0]?.id ?? '')).toBeUndefined();
    expect((await codes.list({ kind: 'owner', userId: server.userId }, page)).total).toBe(0);
    expect(await codes.purgeExpired()).toBe(1);
  });
});
