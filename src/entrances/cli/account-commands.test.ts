import { describe, expect, test } from 'vitest';
import { useCommandLine } from '../../../test/support/command-line.ts';
import { createPasswordHasher } from '../../identity/authentication/password-hash.ts';
import { createAccessTokenStore } from '../../identity/oauth/tokens/access-token-store.ts';
import { createLoginSessionStore } from '../../identity/sessions/login-session-store.ts';
import { createGroupStore } from '../../identity/users/group-store.ts';
import { createPasswordCredentialStore } from '../../identity/users/password-credential-store.ts';
import { createUserStore } from '../../identity/users/user-store.ts';

const { hub, withDatabase, writeConfig } = useCommandLine();
const password = 'purple elephants dance';

describe('hub user', () => {
  test('add takes a password from a pipe and keeps its hash', async () => {
    const added = await hub('user add Ada --admin --password-stdin', { piped: `${password}\n` });
    expect(added).toMatchObject({ exitCode: 0, stdout: 'Created the administrator ada.\n' });
    await withDatabase(async (database) => {
      expect(await createUserStore(database).getByName('ada')).toMatchObject({
        isAdmin: true,
        isInvited: true,
      });
      const stored = await createPasswordCredentialStore(database).findPasswordHash('ada');
      expect(stored?.mustChange).toBe(false);
      const result = await createPasswordHasher().verify(password, stored?.passwordHash);
      expect(result).toEqual({ matches: true, needsRehash: false });
    });
  });

  test('add asks twice at a terminal and never shows what is typed', async () => {
    const typed = `${password}x\u007F\r${password}\r`;
    const added = await hub('user add ada', { typed });
    expect(added).toMatchObject({ exitCode: 0, rawModes: [true, false, true, false] });
    expect(added.stderr).toBe('New password: \nThe same again: \n');
    await withDatabase(async (database) => {
      const stored = await createPasswordCredentialStore(database).findPasswordHash('ada');
      const { matches } = await createPasswordHasher().verify(password, stored?.passwordHash);
      expect(matches).toBe(true);
    });
  });

  test.for([
    ['two different passwords', `${password}\rsomething else\r`, 'The two passwords differ.'],
    ['Ctrl-C', `${password}\u0003`, 'Cancelled.'],
    ['the end of input', 'half a passw', 'Cancelled.'],
    ['a weak password', 'password1234\rpassword1234\r', 'too common'],
  ] as const)('add stops at %s and makes no account', async ([, typed, message]) => {
    const added = await hub('user add ada', { typed });
    expect(added.exitCode).toBe(1);
    expect(added.stderr).toContain(message);
    expect((await hub('user list')).stdout).toContain('There are no users yet');
  });

  test("volume has a claim that is there be one of a user's, and of no other", async () => {
    for (const name of ['ada', 'bob']) await hub(`user add ${name} --no-password`);
    expect((await hub('user volume ada')).stdout).toBe('none\n');
    const given = await hub('user volume ada --claim home claim-ada');
    expect(given.stdout).toBe(
      'The volume "home" of ada is the claim claim-ada from the next start on.\n',
    );
    expect((await hub('user volume ada --claim home --server gpu claim-ada--gpu')).exitCode).toBe(
      0,
    );
    expect((await hub('user volume ada')).stdout).toBe(
      'home  claim-ada\nhome  claim-ada--gpu  gpu\n',
    );
    expect((await hub('user volume bob --claim home claim-ada')).stderr).toContain(
      'in use already',
    );
    expect((await hub('user volume bob --claim home ../pods/x')).stderr).toContain(
      'name of a claim',
    );
    expect((await hub('user volume bob claim-bob')).stderr).toContain('--claim');
    expect((await hub('user volume ada --claim home')).stdout).toContain('as configured');
    expect((await hub('user volume bob --claim home claim-ada')).exitCode).toBe(0);
  });

  test('add without terminal or pipe says what to do', async () => {
    const added = await hub('user add ada');
    expect(added.exitCode).toBe(1);
    expect(added.stderr).toContain('--password-stdin');
  });

  test('add asks for no password before it is clear by what the user will come', async () => {
    const added = await hub('user add ada --authenticator nope', { typed: '' });
    expect(added).toMatchObject({ exitCode: 1, rawModes: [] });
    expect(added.stderr).toContain('There is no authenticator "nope".');
  });

  test('add can leave the password out, and refuses a name that exists or cannot be', async () => {
    expect((await hub('user add ada --no-password')).exitCode).toBe(0);
    expect((await hub('user add ADA --no-password')).stderr).toContain('ada exists already');
    expect((await hub('user add a/b --no-password')).exitCode).toBe(1);
  });

  test('passwd sets another password and ends all logins of the user', async () => {
    await hub('user add ada --no-password');
    const userId = await withDatabase(async (database) => {
      const { id } = await createUserStore(database).getByName('ada');
      await createLoginSessionStore(database).create({
        sessionId: 'a-session',
        userId: id,
        authenticator: 'password',
        identityId: undefined,
        createdAt: new Date(),
        expiresAt: new Date(Date.now() + 60_000),
        address: '192.0.2.1',
        userAgent: '',
        upstreamSessionId: undefined,
        idTokenSealed: undefined,
      });
      return id;
    });
    const changed = await hub('user passwd ada --password-stdin --must-change', {
      piped: 'another fine phrase',
    });
    expect(changed.exitCode).toBe(0);
    await withDatabase(async (database) => {
      expect(await createLoginSessionStore(database).listOfUser(userId)).toEqual([]);
      const stored = await createPasswordCredentialStore(database).findPasswordHash('ada');
      expect(stored?.mustChange).toBe(true);
    });
    expect((await hub('user passwd bob --password-stdin')).stderr).toContain('no user bob');
  });

  test('passwd tells of API tokens that go on, and ends them when it is asked to', async () => {
    await hub('user add ada --no-password');
    await hub('token ada');
    const piped = 'another fine phrase';
    const kept = await hub('user passwd ada --password-stdin', { piped });
    expect(kept.stdout).toContain('API tokens that they keep: 1; --end-tokens ends those too.');
    const ended = await hub('user passwd ada --password-stdin --end-tokens', { piped });
    expect(ended.stdout).toContain('all their logins and API tokens have ended');
    await withDatabase(async (database) => {
      const { id } = await createUserStore(database).getByName('ada');
      expect(await createAccessTokenStore({ database }).countOfUser(id)).toBe(0);
    });
  });

  test('account shows whose files the servers of a user have, and gives them others', async () => {
    for (const name of ['ada', 'bob']) await hub(`user add ${name} --no-password`);
    expect((await hub('user account ada')).stdout).toMatch(/^not decided; ada if free/);
    expect((await hub('user account ada files')).exitCode).toBe(0);
    expect((await hub('user account ada')).stdout).toBe('files\n');
    const taken = await hub('user account bob files');
    expect(taken).toMatchObject({ exitCode: 1 });
    expect(taken.stderr).toMatch(/files belongs to ada[\s\S]*Give ada another one/);
    expect((await hub('user account bob a/b')).exitCode).toBe(1);
    await hub('user delete ada --yes');
    expect((await hub('user account bob files')).exitCode).toBe(0);
    expect(JSON.parse((await hub('user list --json')).stdout)).toMatchObject([
      { name: 'bob', system_account: 'files' },
    ]);
  });

  test('list shows all users, as a table or as JSON', async () => {
    await hub('user add ada --admin --no-password');
    await hub('user add bob --no-password');
    expect((await hub('user list')).stdout).toMatch(
      /^ada {3}admin {2}never\nbob {3}user {3}never$/m,
    );
    expect(JSON.parse((await hub('user list --json')).stdout)).toMatchObject([
      { name: 'ada', admin: true },
      { name: 'bob', admin: false },
    ]);
  });

  test('delete asks, and deletes only when it is confirmed', async () => {
    await hub('user add ada --no-password');
    expect(await hub('user delete ada')).toMatchObject({ exitCode: 1 });
    expect(await hub('user delete ada', { typed: 'n\n' })).toMatchObject({ exitCode: 1 });
    expect(await hub('user delete ada', { typed: 'y\n' })).toMatchObject({
      exitCode: 0,
      stdout: 'Deleted ada.\n',
    });
    expect((await hub('user delete ada --yes')).stderr).toContain('no user ada');
  });
});

test('hub group list shows all groups, however many there are', async () => {
  await withDatabase((database) => {
    const names = Array.from({ length: 120 }, (_, index) => `team-${index}`);
    return createGroupStore(database).createAll({ names, memberNames: [], origin: 'api' });
  });
  expect(JSON.parse((await hub('group list --json')).stdout)).toHaveLength(120);
});

describe('hub token', () => {
  test('prints a token and nothing else, with scopes, note and lifetime as asked', async () => {
    await hub('user add ada --admin --no-password');
    const made = await hub(
      'token Ada --note "for tests" --expires-in 2d --scopes "list:users, read:groups"',
    );
    expect(made.exitCode).toBe(0);
    expect(made.stdout).toMatch(/^hub_[\w-]{43}\n$/);
    await withDatabase(async (database) => {
      const user = await createUserStore(database).getByName('ada');
      const [token] = await createAccessTokenStore({ database }).listOfUser(user.id);
      expect(token).toMatchObject({ note: 'for tests', scopes: ['list:users', 'read:groups'] });
      const lifetimeMs = (token?.expiresAt?.getTime() ?? 0) - (token?.createdAt.getTime() ?? 0);
      expect(Math.round(lifetimeMs / 1000)).toBe(2 * 86_400);
    });
  });

  test('refuses unknown users, scopes and lifetimes', async () => {
    await hub('user add ada --no-password');
    expect((await hub('token bob')).stderr).toContain('There is no user bob.');
    expect((await hub('token ada --scopes nope')).stderr).toContain('The scope "nope" is unknown');
    const excess = await hub('token ada --scopes list:users');
    expect(excess).toMatchObject({ exitCode: 1, stdout: '' });
    expect(excess.stderr).toContain('more than the owner of the token may do');
    expect((await hub('token ada --expires-in never')).exitCode).toBe(1);
    expect((await hub('token ada --expires-in 0')).exitCode).toBe(1);
    writeConfig({ Hub: { token_expires_in_max_seconds: 3600 } });
    expect((await hub('token ada --expires-in 2h')).stderr).toContain('3,600 seconds at most');
    expect((await hub('token ada --expires-in 1h')).exitCode).toBe(0);
  });

  test('lasts as long as the hub allows where no lifetime is asked for', async () => {
    await hub('user add ada --no-password');
    writeConfig({ Hub: { token_expires_in_max_seconds: 3600 } });
    expect((await hub('token ada')).exitCode).toBe(0);
    await withDatabase(async (database) => {
      const user = await createUserStore(database).getByName('ada');
      const [token] = await createAccessTokenStore({ database }).listOfUser(user.id);
      const lifetimeMs = (token?.expiresAt?.getTime() ?? 0) - (token?.createdAt.getTime() ?? 0);
      expect(Math.round(lifetimeMs / 1000)).toBe(3600);
    });
  });
});
