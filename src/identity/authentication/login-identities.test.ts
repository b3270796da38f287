import { describe, expect, test } from 'vitest';
import { provider, useLoginWorlds } from '../../../test/support/login-world.ts';
import type { Authenticator } from '../../plugin/host/authenticator.ts';

const world = useLoginWorlds();

describe('identities', () => {
  test('the same name from another provider is refused', async () => {
    const { admit, users } = await world({ allow_all: true });
    const first = await admit({ name: 'ada', issuer: 'https://a', subject: '1' });
    const second = await admit({ name: 'ada', issuer: 'https://b', subject: '1' }, 'other');
    const third = await admit({ name: 'ada', issuer: 'https://a', subject: '2' });
    expect(first).toMatchObject({ outcome: 'logged_in' });
    for (const result of [second, third]) {
      expect(result).toMatchObject({ outcome: 'refused', status: 403 });
      expect('message' in result && String(result.message)).toContain('another way');
    }
    expect(await users.count()).toBe(1);
  });

  test('an account with a password is not open to a provider that sends its name', async () => {
    const { admit, users, credentials } = await world({ allow_all: true });
    await users.create({ name: 'ada', isInvited: true });
    await credentials.setPasswordHash('ada', 'some hash');
    expect(await admit({ name: 'ada' })).toMatchObject({ outcome: 'refused', status: 403 });
  });

  test('a linked identity logs in to the account it is linked to', async () => {
    const { admit, users, identities } = await world({ allowed_users: ['ada'] });
    const user = await users.create({ name: 'ada' });
    await identities.link({
      userId: user.id,
      authenticator: 'work',
      issuer: 'https://a',
      subject: '7',
    });
    expect(await admit({ name: 'a.lovelace', issuer: 'https://a', subject: '7' })).toMatchObject({
      outcome: 'logged_in',
      user: { id: user.id, name: 'ada' },
    });
  });

  test('a user who takes the name of an administrator at the provider stays who they are', async () => {
    const { admit } = await world({ admin_users: ['root'], allowed_users: ['mallory'] });
    await admit({ name: 'mallory', issuer: 'https://a', subject: '666' });
    const renamed = await admit({ name: 'root', issuer: 'https://a', subject: '666' });
    expect(renamed).toMatchObject({ user: { name: 'mallory', isAdmin: false } });
  });

  test('a blocked name at the provider stays blocked under the name in the hub', async () => {
    const { admit } = await world({ allow_all: true, blocked_users: ['banned'] });
    await admit({ name: 'fine', issuer: 'https://a', subject: '1' });
    expect(await admit({ name: 'banned', issuer: 'https://a', subject: '1' })).toMatchObject({
      outcome: 'refused',
    });
  });

  test('a renamed account keeps its login, and its old name gives no other user entry', async () => {
    const { login, users } = await world();
    const ada = await users.create({ name: 'ada' });
    await login('ada', 'right', 'own');
    await users.rename(ada.id, 'ada.king');
    const successor = await users.create({ name: 'ada' });
    expect(await login('ada', 'right', 'own')).toMatchObject({ user: { id: successor.id } });
    expect(await login('ada.king', 'right', 'own')).toMatchObject({ user: { id: ada.id } });
  });

  test('ten first logins of one person at once make one account', async () => {
    const { admit, users } = await world({ allow_all: true });
    const results = await Promise.all(
      Array.from({ length: 10 }, () => admit({ name: 'ada', issuer: 'https://a', subject: '1' })),
    );
    expect(new Set(results.map((result) => result.outcome))).toEqual(new Set(['logged_in']));
    expect(await users.count()).toBe(1);
  });
});

describe('what a provider says of a user', () => {
  test('admin_users grants, and never revokes; the provider does both', async () => {
    const { admit, users } = await world({ allow_all: true, admin_users: ['ada'] });
    const isAdmin = async (name: string) => (await users.getByName(name)).isAdmin;
    await admit({ name: 'ada', admin: false });
    expect(await isAdmin('ada')).toBe(true);
    await admit({ name: 'bob', admin: true });
    expect(await isAdmin('bob')).toBe(true);
    await admit({ name: 'bob' });
    expect(await isAdmin('bob')).toBe(true);
    await admit({ name: 'bob', admin: false });
    expect(await isAdmin('bob')).toBe(false);
  });

  test('groups are synchronised only when manage_groups is on', async () => {
    const off = await world({ allow_all: true });
    await off.admit({ name: 'ada', groups: ['staff'] });
    expect(await off.groups.groupNamesOf('ada')).toEqual([]);

    const on = await world({ allow_all: true, manage_groups: true });
    await on.admit({ name: 'ada', groups: ['staff', 'math', 'bad/name', ''] });
    expect(await on.groups.groupNamesOf('ada')).toEqual(['math', 'staff']);
    await on.admit({ name: 'ada', groups: ['math'] });
    expect(await on.groups.groupNamesOf('ada')).toEqual(['math']);
    await on.admit({ name: 'ada' });
    expect(await on.groups.groupNamesOf('ada')).toEqual(['math']);
  });

  test('roles are synchronised when manage_roles is on', async () => {
    const { admit, roles } = await world({ allow_all: true, manage_roles: true });
    await roles.apply({
      save: [{ name: 'grader', description: '', scopes: ['list:users'], origin: 'config' }],
    });
    await admit({ name: 'ada', roles: ['grader', 'no-such-role'] });
    expect(await roles.listAssignments({ subjectName: 'ada' })).toMatchObject([
      { roleName: 'grader', origin: 'work' },
    ]);
  });

  test('its state is kept only when asked for, or when the provider can be asked again', async () => {
    const refreshable: Authenticator = {
      ...provider,
      refreshUser: async () => ({ outcome: 'unchanged' }),
    };
    const said = { name: 'ada', authState: { token: 'secret' } };
    for (const [settings, authenticator, state] of [
      [{ allow_all: true }, 'work', undefined],
      [{ allow_all: true, enable_auth_state: true }, 'work', { token: 'secret' }],
      [{ allow_all: true }, 'refreshable', { token: 'secret' }],
    ] as const) {
      const { admit, identities } = await world(settings, { refreshable });
      const result = await admit(said, authenticator);
      if (result.outcome !== 'logged_in') throw new Error('the login was refused');
      expect((await identities.findAuthState(result.identityId))?.state).toEqual(state);
    }
  });

  test('what the session needs is passed on', async () => {
    const { admit } = await world({ allow_all: true });
    const said = { upstreamSessionId: 'sid', idToken: 'jwt', mustChangePassword: true };
    expect(await admit({ name: 'ada', ...said })).toMatchObject(said);
  });
});
