import { expect, test } from 'vitest';
import { createGroup } from '../../../../test/support/create-group.ts';
import { describeEachDatabase } from '../../../../test/support/databases.ts';
import { createGroupStore } from '../../users/group-store.ts';
import { noInfo } from '../../users/user-info.ts';
import { createUserInfoStore } from '../../users/user-info-store.ts';
import { createUserStore } from '../../users/user-store.ts';
import { createUserClaims } from './claims.ts';

describeEachDatabase('claims about a user', (open) => {
  test('hold no group of the one who has the name since a rename', async () => {
    const database = await open();
    const users = createUserStore(database);
    const groups = createGroupStore(database);
    const known = await users.create({ name: 'ada' });
    await users.rename(known.id, 'ada-lovelace');
    await users.create({ name: 'ada' });
    for (const [name, member] of [
      ['staff', 'ada-lovelace'],
      ['wheel', 'ada'],
    ] as const) {
      await createGroup(groups, { name });
      await groups.addMembers(name, [member], 'api');
    }
    const claimsOf = createUserClaims({ userInfo: createUserInfoStore(database), groups });
    expect(await claimsOf(known, ['openid', 'openid:groups'])).toMatchObject({
      sub: known.id,
      groups: ['staff'],
    });
  });
});

test('who is told no more than the name and the groups costs no look at the rest', async () => {
  const looked: string[] = [];
  const claimsOf = createUserClaims({
    userInfo: {
      of: async (id) => {
        looked.push(id);
        return noInfo;
      },
    },
    groups: { groupNamesByUser: async () => new Map() },
  });
  const ada = { id: 'u1', name: 'ada' };
  const scopes = ['openid', 'openid:preferred_username', 'openid:groups'];
  expect(await claimsOf(ada, scopes)).toEqual({ sub: 'u1', preferred_username: 'ada', groups: [] });
  expect(looked).toEqual([]);
  await claimsOf(ada, ['openid', 'openid:email']);
  expect(looked).toEqual(['u1']);
});
