import { expect, test } from 'vitest';
import { describeEachDatabase } from '../../../test/support/databases.ts';
import { hashSecret } from '../../platform/crypto/hash.ts';
import { createInvitationStore } from './invitation-store.ts';
import { createUserStore } from './user-store.ts';

const expiresAt = new Date(10_000);
const before = new Date(9_999);

describeEachDatabase('the invitation store', (open) => {
  const openStore = async () => {
    const database = await open();
    const { id } = await createUserStore(database).create({ name: 'alice' });
    const link = { userId: id, purpose: 'invitation', createdBy: 'admin', expiresAt } as const;
    return { database, link, invitations: createInvitationStore(database) };
  };

  test('stores the secret as a hash only', async () => {
    const { database, link, invitations } = await openStore();
    const { secret } = await invitations.create(link);
    const row = await database.kysely
      .selectFrom('invitations')
      .selectAll()
      .executeTakeFirstOrThrow();
    expect(row.secret_hash).toBe(hashSecret(secret));
    expect(JSON.stringify(row)).not.toContain(secret);
  });

  test('gives a link to one of many who take it at once', async () => {
    const { link, invitations } = await openStore();
    const { invitation, secret } = await invitations.create(link);
    expect(await invitations.findInvitation(hashSecret(secret), before)).toEqual(invitation);
    const taken = await Promise.all(
      Array.from({ length: 8 }, () => invitations.takeInvitation(hashSecret(secret), before)),
    );
    expect(taken.filter((each) => each !== undefined)).toEqual([invitation]);
    expect(await invitations.findInvitation(hashSecret(secret), before)).toBeUndefined();
  });

  test('gives no link that has expired or is unknown', async () => {
    const { link, invitations } = await openStore();
    const { secret } = await invitations.create(link);
    expect(await invitations.takeInvitation(hashSecret(secret), expiresAt)).toBeUndefined();
    expect(await invitations.findInvitation(hashSecret(secret), expiresAt)).toBeUndefined();
    expect(await invitations.takeInvitation(secret, before)).toBeUndefined();
  });

  test('ends an earlier link of the same purpose', async () => {
    const { link, invitations } = await openStore();
    const first = await invitations.create(link);
    const reset = await invitations.create({ ...link, purpose: 'password_reset' });
    const second = await invitations.create(link);
    expect(await invitations.takeInvitation(hashSecret(first.secret), before)).toBeUndefined();
    const left = await invitations.listForUser(link.userId, before);
    expect(left.map(({ id }) => id).sort()).toEqual(
      [reset.invitation.id, second.invitation.id].sort(),
    );
  });

  test('lists the links of many users at once, and what has become of them', async () => {
    const { database, link, invitations } = await openStore();
    const bob = await createUserStore(database).create({ name: 'bob' });
    const { invitation } = await invitations.create(link);
    const { secret } = await invitations.create({ ...link, userId: bob.id });
    await invitations.takeInvitation(hashSecret(secret), before);
    const listed = await invitations.listByUser([link.userId, bob.id], before);
    expect(listed.get(link.userId)).toEqual([{ ...invitation, state: 'sent' }]);
    const stateAt = async (userId: string, now: Date) =>
      (await invitations.listForUser(userId, now)).map(({ state }) => state);
    expect(await stateAt(bob.id, expiresAt)).toEqual(['used']);
    expect(await stateAt(link.userId, expiresAt)).toEqual(['expired']);
  });

  test('deletes what could not be used for a month', async () => {
    const { link, invitations } = await openStore();
    const { invitation } = await invitations.create(link);
    const later = (from: Date) => new Date(from.getTime() + 30 * 86_400_000);
    expect(await invitations.deleteExpired(later(before))).toBe(0);
    expect(await invitations.deleteExpired(later(expiresAt))).toBe(1);
    expect(await invitations.delete(invitation.id)).toBe(false);
  });

  test('refuses a user that is not there', async () => {
    const { link, invitations } = await openStore();
    const creating = invitations.create({ ...link, userId: 'nobody' });
    await expect(creating).rejects.toMatchObject({ code: 'not_found' });
  });
});
