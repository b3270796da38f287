import { describe, expect, test } from 'vitest';
import { findSystemUser } from './system-user.ts';

describe('an account of the machine', () => {
  test('is found with its ids, groups and home', async () => {
    const root = await findSystemUser('root');
    expect(root).toMatchObject({ name: 'root', userId: 0, groupId: 0 });
    expect(root?.groupIds).toContain(0);
    expect(root?.home).toMatch(/^\//);
  });

  test.each(['no-such-user', '', '-s', '0', 'root:x', '../passwd'])(
    '%j is no account',
    async (name) => {
      expect(await findSystemUser(name)).toBeUndefined();
    },
  );
});
