import { pino } from 'pino';
import { afterEach, describe, expect, test } from 'vitest';
import { memorySpace } from '../../test/support/memory-space.ts';
import { Secret } from '../config/secret.ts';
import { authenticatorSection } from '../config/sections-schema.ts';
import { createSealer } from '../crypto/sealer.ts';
import type {
  AuthenticatedUser,
  Authenticator,
  LoginRequest,
} from '../plugin-host/authenticator.ts';
import { createRoleStore } from '../rbac/role-store.ts';
import type { HubDatabase } from '../store/database.ts';
import { openDatabase } from '../store/open-database.ts';
import { createGroupStore } from '../users/group-store.ts';
import { createIdentityStore } from '../users/identity-store.ts';
import { createPasswordCredentialStore } from '../users/password-credential-store.ts';
import { createUserInfoStore } from '../users/user-info-store.ts';
import { createUserStore } from '../users/user-store.ts';
import { createAccountStore } from './account-store.ts';
import { createLoginService } from './login-service.ts';
import { createLoginThrottle } from './login-throttle.ts';

const log = pino({ level: 'silent' });

let database: HubDatabase | undefined;
afterEach(async () => {
  await database?.[Symbol.asyncDispose]();
  database = undefined;
});

const request: LoginRequest = {
  address: '192.0.2.1',
  peerAddress: '192.0.2.1',
  isTrustedProxy: false,
  userAgent: 'test',
  headers: {},
  signal: new AbortController().signal,
};

const formLogin = { kind: 'form', label: 'Form', fields: [] } as const;

/** Accepts everybody whose password is `right`. */
const anybody: Authenticator = {
  login: formLogin,
  authenticate: async (form) =>
    form.get('password') === 'right'
      ? { outcome: 'authenticated', user: { name: form.get('username') ?? '' } }
      : { outcome: 'refused', reason: 'credentials' },
};

const ownAccounts: Authenticator = { ...anybody, ownsAccounts: true };
const provider: Authenticator = {
  login: { kind: 'external', label: 'Provider' },
  beginLogin: () => Promise.reject(new Error('nobody goes there')),
  completeLogin: () => Promise.reject(new Error('nobody comes back')),
};

async function createParts(
  settings: object = {},
  authenticators: Record<string, Authenticator> = {},
) {
  const opened = await openDatabase('sqlite::memory:', { directory: '.', log });
  database = opened;
  const config = authenticatorSection.parse(settings);
  const sealer = createSealer([new Secret('a test secret of some length')], 'auth-state');
  const stores = {
    users: createUserStore(opened),
    groups: createGroupStore(opened),
    userInfo: createUserInfoStore(opened),
    identities: createIdentityStore(opened, { sealer }),
    accounts: createAccountStore(opened),
    credentials: createPasswordCredentialStore(opened),
    roles: createRoleStore(opened),
  };
  const all: Record<string, Authenticator> = {
    any: anybody,
    own: ownAccounts,
    work: provider,
    other: provider,
    ...authenticators,
  };
  const throttle = createLoginThrottle({ ...config, records: memorySpace() });
  const service = createLoginService({
    ...stores,
    config,
    binding: { isFor: () => true, isNamed: () => false, choose: () => 'any' },
    throttle,
    audit: opened.audit,
    log,
    authenticators: {
      find: (name) => (all[name] === undefined ? undefined : { name, authenticator: all[name] }),
    },
  });
  const login = (username: string, password = 'right', authenticator = 'any') =>
    service.attemptLogin(authenticator, new Map(Object.entries({ username, password })), request);
  const admit = (user: AuthenticatedUser, authenticator = 'work') =>
    service.admitUser(user, authenticator);
  return { ...stores, service, login, admit, throttle };
}

describe('who may log in', () => {
  test('no user may log in unless a rule lets them in', async () => {
    const { login, users } = await createParts();
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
    const { admit } = await createParts(settings);
    expect(await admit({ name: 'ada', ...said })).toMatchObject({
      outcome: 'logged_in',
      authenticator: 'work',
      user: { name: 'ada' },
    });
  });

  test('an invited user may log in, an account that merely exists may not', async () => {
    const { users, login } = await createParts();
    await users.create({ name: 'ada', isInvited: true });
    await users.create({ name: 'bob' });
    expect(await login('ada')).toMatchObject({ outcome: 'logged_in' });
    expect(await login('bob')).toMatchObject({ outcome: 'refused', status: 403 });
  });

  test('with accounts of the hub itself, an account is permission enough', async () => {
    const { users, login } = await createParts();
    await users.create({ name: 'ada' });
    expect(await login('ada', 'right', 'own')).toMatchObject({ outcome: 'logged_in' });
    expect(await login('eve', 'right', 'own')).toMatchObject({ outcome: 'refused', status: 403 });
  });

  test('a block wins over everything', async () => {
    const settings = { allow_all: true, admin_users: ['ada'], blocked_users: ['Ada'] };
    const { users, login, admit } = await createParts(settings);
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
    const { admit } = await createParts({ allow_all: true, allowed_users: ['ada'] });
    expect(await admit({ name: 'ada', allowed: false })).toMatchObject({ outcome: 'refused' });
  });
});

describe('names', () => {
  test('are lower-cased, trimmed and normalised, so that one person has one account', async () => {
    const { login, users } = await createParts({ allow_all: true });
    for (const spelling of ['Zoë', 'zoe\u0308', ' ZOË ']) {
      expect(await login(spelling)).toMatchObject({ outcome: 'logged_in', user: { name: 'zoë' } });
    }
    expect(await users.list({ offset: 0, limit: 10 })).toMatchObject({ items: [{ name: 'zoë' }] });
  });

  test('are mapped, and the rules go by the mapped name', async () => {
    const { login } = await createParts({
      username_map: { 'Ada@Example.org': 'ada' },
      allowed_users: ['ada'],
    });
    expect(await login('ada@example.org')).toMatchObject({ user: { name: 'ada' } });
  });

  test.for(['xada', 'adax', 'a\nada'])('the pattern must match all of %j', async (name) => {
    const { login } = await createParts({ allow_all: true, username_pattern: 'ada|bob' });
    expect(await login(name)).toMatchObject({ outcome: 'refused', status: 403 });
    expect(await login('ada')).toMatchObject({ outcome: 'logged_in' });
  });

  test.for(['a/b', '..', 'x'.repeat(300), 'a\u0000b'])('%j cannot be a user', async (name) => {
    const { login, users } = await createParts({ allow_all: true });
    expect(await login(name)).toMatchObject({ outcome: 'refused', status: 403 });
    expect(await users.count()).toBe(0);
  });
});

describe('identities', () => {
  test('the same name from another provider is refused', async () => {
    const { admit, users } = await createParts({ allow_all: true });
    const first = await admit({ name: 'ada', issuer: 'https://a', subject: '1' });
    const second = await admit({ name: 'ada', issuer: 'https://b', subject: '1' }, 'other');
    const third = await admit({ name: 'ada', issuer: 'https://a', subject: '2' });
    expect(first).toMatchObject({ outcome: 'logged_in' });
    for (const result of [second, third]) {
      expect(result).toMatchObject({ outcome: 'refused', status: 403 });
      expect(result).toHaveProperty('message', expect.stringContaining('another way'));
    }
    expect(await users.count()).toBe(1);
  });

  test('an account with a password is not open to a provider that sends its name', async () => {
    const { admit, users, credentials } = await createParts({ allow_all: true });
    await users.create({ name: 'ada', isInvited: true });
    await credentials.setPasswordHash('ada', 'some hash');
    expect(await admit({ name: 'ada' })).toMatchObject({ outcome: 'refused', status: 403 });
  });

  test('a linked identity logs in to the account it is linked to', async () => {
    const { admit, users, identities } = await createParts({ allowed_users: ['ada'] });
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
    const { admit } = await createParts({ admin_users: ['root'], allowed_users: ['mallory'] });
    await admit({ name: 'mallory', issuer: 'https://a', subject: '666' });
    const renamed = await admit({ name: 'root', issuer: 'https://a', subject: '666' });
    expect(renamed).toMatchObject({ user: { name: 'mallory', isAdmin: false } });
  });

  test('a blocked name at the provider stays blocked under the name in the hub', async () => {
    const { admit } = await createParts({ allow_all: true, blocked_users: ['banned'] });
    await admit({ name: 'fine', issuer: 'https://a', subject: '1' });
    expect(await admit({ name: 'banned', issuer: 'https://a', subject: '1' })).toMatchObject({
      outcome: 'refused',
    });
  });

  test('a renamed account keeps its login, and its old name gives no other user entry', async () => {
    const { login, users } = await createParts();
    const ada = await users.create({ name: 'ada' });
    await login('ada', 'right', 'own');
    await users.rename(ada.id, 'ada.king');
    const successor = await users.create({ name: 'ada' });
    expect(await login('ada', 'right', 'own')).toMatchObject({ user: { id: successor.id } });
    expect(await login('ada.king', 'right', 'own')).toMatchObject({ user: { id: ada.id } });
  });

  test('ten first logins of one person at once make one account', async () => {
    const { admit, users } = await createParts({ allow_all: true });
    const results = await Promise.all(
      Array.from({ length: 10 }, () => admit({ name: 'ada', issuer: 'https://a', subject: '1' })),
    );
    expect(new Set(results.map((result) => result.outcome))).toEqual(new Set(['logged_in']));
    expect(await users.count()).toBe(1);
  });
});

describe('what a provider says of a user', () => {
  test('admin_users grants, and never revokes; the provider does both', async () => {
    const { admit, users } = await createParts({ allow_all: true, admin_users: ['ada'] });
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
    const off = await createParts({ allow_all: true });
    await off.admit({ name: 'ada', groups: ['staff'] });
    expect(await off.groups.groupNamesOf('ada')).toEqual([]);
    await database?.[Symbol.asyncDispose]();

    const on = await createParts({ allow_all: true, manage_groups: true });
    await on.admit({ name: 'ada', groups: ['staff', 'math', 'bad/name', ''] });
    expect(await on.groups.groupNamesOf('ada')).toEqual(['math', 'staff']);
    await on.admit({ name: 'ada', groups: ['math'] });
    expect(await on.groups.groupNamesOf('ada')).toEqual(['math']);
    await on.admit({ name: 'ada' });
    expect(await on.groups.groupNamesOf('ada')).toEqual(['math']);
  });

  test('roles are synchronised when manage_roles is on', async () => {
    const { admit, roles } = await createParts({ allow_all: true, manage_roles: true });
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
      const { admit, identities } = await createParts(settings, { refreshable });
      const result = await admit(said, authenticator);
      if (result.outcome !== 'logged_in') throw new Error('the login was refused');
      expect((await identities.findAuthState(result.identityId))?.state).toEqual(state);
      await database?.[Symbol.asyncDispose]();
    }
    database = undefined;
  });

  test('what the session needs is passed on', async () => {
    const { admit } = await createParts({ allow_all: true });
    const said = { upstreamSessionId: 'sid', idToken: 'jwt', mustChangePassword: true };
    expect(await admit({ name: 'ada', ...said })).toMatchObject(said);
  });
});

describe('a login form', () => {
  test('answers the same for a wrong password and an unknown user', async () => {
    const { users, login } = await createParts();
    await users.create({ name: 'ada' });
    const wrong = await login('ada', 'wrong', 'own');
    const unknown = await login('nobody', 'wrong', 'own');
    expect(wrong).toMatchObject({ outcome: 'refused', status: 401 });
    expect(unknown).toEqual(wrong);
  });

  test('locks a name however it is spelt, whether or not it exists', async () => {
    const { login } = await createParts({ allow_all: true, lockout_attempts: 3 });
    const answers: unknown[] = [];
    for (const spelling of ['Ada', 'ADA', ' ada ', 'ada']) {
      answers.push(await login(spelling, 'wrong'));
    }
    expect(answers.at(2)).toMatchObject({ status: 401 });
    expect(answers.at(3)).toMatchObject({ status: 429, retryAfterSeconds: 30 });
    expect(await login('ada', 'right')).toMatchObject({ status: 429 });
  });

  test('bounds the password checks that run, and those that wait for them', async () => {
    const gate = Promise.withResolvers<void>();
    let running = 0;
    let most = 0;
    const slow: Authenticator = {
      login: formLogin,
      async authenticate() {
        running += 1;
        most = Math.max(most, running);
        await gate.promise;
        running -= 1;
        return { outcome: 'refused', reason: 'credentials' };
      },
    };
    const limits = { concurrent_logins: 2, max_pending_logins: 9, lockout_attempts: 100 };
    const { login } = await createParts({ allow_all: true, ...limits }, { slow });
    const logins = Array.from({ length: 12 }, (_, index) => login(`u${index}`, 'x', 'slow'));
    const first = await Promise.race(logins);
    expect(first).toMatchObject({ outcome: 'refused', status: 429 });
    expect(first).toHaveProperty(
      'retryAfterSeconds',
      expect.toSatisfy((n) => n >= 2 && n <= 10),
    );
    expect(first).toHaveProperty('message', expect.stringContaining('Many users are logging in'));
    await expect.poll(() => running).toBe(2);
    gate.resolve();
    const statuses = (await Promise.all(logins)).map(
      (result) => 'status' in result && result.status,
    );
    expect(statuses.filter((status) => status === 401)).toHaveLength(9);
    expect(statuses.filter((status) => status === 429)).toHaveLength(3);
    expect(most).toBe(2);
  });

  test('does not blame the person when the provider fails', async () => {
    const failing: Authenticator = {
      login: formLogin,
      authenticate: () => Promise.reject(new Error('connect ECONNREFUSED 10.0.0.5:389')),
    };
    const { login, throttle } = await createParts({ lockout_attempts: 1 }, { failing });
    await expect(login('ada', 'x', 'failing')).rejects.toMatchObject({
      code: 'unavailable',
      message: 'Logging in is not possible just now.',
    });
    expect(await throttle.list()).toEqual([]);
  });

  test('without a name is refused before anything is asked', async () => {
    const { login } = await createParts({ allow_all: true });
    expect(await login('  ')).toMatchObject({ outcome: 'refused', status: 401 });
  });

  test('of an authenticator that is not there or takes none is refused', async () => {
    const { login } = await createParts();
    await expect(login('ada', 'right', 'nope')).rejects.toMatchObject({ code: 'not_found' });
    await expect(login('ada', 'right', 'work')).rejects.toMatchObject({ code: 'bad_request' });
  });
});
