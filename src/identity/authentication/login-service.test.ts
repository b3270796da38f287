import { describe, expect, test } from 'vitest';
import { useLoginWorlds } from '../../../test/support/login-world.ts';

const world = useLoginWorlds();

describe('who may log in', () => {
  test('no user may log in unless a rule lets them in', async () => {
    const { login, users } = await world();
    expect(await login('ada')).toMatchObject({ outcome: 'refused', status: 403 });
    expect(await users.count()).toBe(0);
  });

  test.for([
    ['allow_all', { allow_all: true }, {}],
    ['allowed_users', { allowed_users: ['ada'] }, {}],
    ['allowed_users in another spelling', { allowed_users: [' ADA '] }, {}],
    ['admin_users', { admin_users: ['ada'] }, {}],
    ['a rule of the provider', {}, { allowed: true }],
    ['being an administrator at the provider', {}, { admin: true }],
  ] as const)('%s lets a user in', async ([, settings, said]) => {
    const { admit } = await world(settings);
    expect(await admit({ name: 'ada', ...said })).toMatchObject({
      outcome: 'logged_in',
      authenticator: 'work',
      user: { name: 'ada' },
    });
  });

  test('an invited user may log in, an account that merely exists may not', async () => {
    const { users, login } = await world();
    await users.create({ name: 'ada', isInvited: true });
    await users.create({ name: 'bob' });
    expect(await login('ada')).toMatchObject({ outcome: 'logged_in' });
    expect(await login('bob')).toMatchObject({ outcome: 'refused', status: 403 });
  });

  test('with accounts of the hub itself, an account is permission enough', async () => {
    const { users, login } = await world();
    await users.create({ name: 'ada' });
    expect(await login('ada', 'right', 'own')).toMatchObject({ outcome: 'logged_in' });
    expect(await login('eve', 'right', 'own')).toMatchObject({ outcome: 'refused', status: 403 });
  });

  test('a block wins over everything', async () => {
    const settings = { allow_all: true, admin_users: ['ada'], blocked_users: ['Ada'] };
    const { users, login, admit } = await world(settings);
    await users.create({ name: 'ada', isInvited: true });
    for (const name of ['ada', 'ADA', ' ada', 'ada ']) {
      expect(await login(name)).toMatchObject({ outcome: 'refused', status: 403 });
      expect(await login(name, 'right', 'own')).toMatchObject({ outcome: 'refused' });
    }
    expect(await admit({ name: 'ada', allowed: true, admin: true })).toMatchObject({
      outcome: 'refused',
      status: 403,
    });
  });

  test('a refusal of the provider wins over the lists', async () => {
    const { admit } = await world({ allow_all: true, allowed_users: ['ada'] });
    expect(await admit({ name: 'ada', allowed: false })).toMatchObject({ outcome: 'refused' });
  });
});

describe('names', () => {
  test('are lower-cased, trimmed and normalised, so that one person has one account', async () => {
    const { login, users } = await world({ allow_all: true });
    for (const spelling of ['Zoë', 'zoe\u0308', ' ZOË ']) {
      expect(await login(spelling)).toMatchObject({ outcome: 'logged_in', user: { name: 'zoë' } });
    }
    expect(await users.list({ offset: 0, limit: 10 })).toMatchObject({ items: [{ name: 'zoë' }] });
  });

  test('are mapped, and the rules go by the mapped name', async () => {
    const { login } = await world({
      username_map: { 'Ada@Example.org': 'ada' },
      allowed_users: ['ada'],
    });
    expect(await login('ada@example.org')).toMatchObject({ user: { name: 'ada' } });
  });

  test.for(['xada', 'adax', 'a\nada'])('the pattern must match all of %j', async (name) => {
    const { login } = await world({ allow_all: true, username_pattern: 'ada|bob' });
    expect(await login(name)).toMatchObject({ outcome: 'refused', status: 403 });
    expect(await login('ada')).toMatchObject({ outcome: 'logged_in' });
  });

  test.for(['a/b', '..', 'x'.repeat(300), 'a\u0000b'])('%j cannot be a user', async (name) => {
    const { login, users } = await world({ allow_all: true });
    expect(await login(name)).toMatchObject({ outcome: 'refused', status: 403 });
    expect(await users.count()).toBe(0);
  });
});
