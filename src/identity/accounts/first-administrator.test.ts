import { expect, test } from 'vitest';
import { describeEachDatabase } from '../../../test/support/databases.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import { createSettingStore } from '../../platform/store/setting-store.ts';
import type { Authenticator } from '../../plugin/host/authenticator.ts';
import { createPasswordCredentialStore } from '../users/password-credential-store.ts';
import { createUserStore } from '../users/user-store.ts';
import { createFirstAdministrator } from './first-administrator.ts';
import { createFirstRun } from './first-run.ts';
import { createSetUpLink } from './set-up-link.ts';

const login = { kind: 'form', label: 'Password', fields: [] } as const;
const unused = () => Promise.reject(new Error('nobody logs in'));
const password: Authenticator = { login, ownsAccounts: true, authenticate: unused };
const provider: Authenticator = {
  login: { kind: 'external', label: 'External' },
  beginLogin: unused,
  completeLogin: unused,
};

function createParts(database: HubDatabase, authenticators: readonly Authenticator[] = [password]) {
  const users = createUserStore(database);
  const credentials = createPasswordCredentialStore(database);
  const setUpLink = createSetUpLink({
    settings: createSettingStore(database),
    users,
    credentials,
    publicUrl: new URL('https://hub.example.org/'),
    basePath: '/team/',
  });
  const firstAdministrator = createFirstAdministrator({
    setUpLink,
    users,
    firstRun: createFirstRun(createSettingStore(database)),
    userNames: { resolveNew: (name) => name },
    authenticators: {
      list: authenticators.map((authenticator, index) => ({ name: `${index}`, authenticator })),
    },
    passwords: {
      problemWith: (text) => (text.length < 12 ? 'Too short.' : undefined),
      set: ({ name }, text) => credentials.setPasswordHash(name, `hash of ${text}`),
    },
  });
  const issueSecret = async () =>
    (await firstAdministrator.issueLink())?.searchParams.get('secret') ?? undefined;
  return { users, credentials, firstAdministrator, setUpLink, issueSecret };
}

const ada = { name: 'ada', password: 'quiet morning rivers' };

describeEachDatabase('the first administrator', (open) => {
  test('needs no link once another way has made one, also after that one is gone', async () => {
    const { users, credentials, firstAdministrator, setUpLink, issueSecret } = createParts(
      await open(),
    );
    const secret = (await issueSecret()) ?? '';
    const { id } = await users.create({ name: 'grace', isAdmin: true, isInvited: true });
    expect(await setUpLink.endWhereDone()).toBe(false);
    expect(await firstAdministrator.isValid(secret)).toBe(true);
    await credentials.setPasswordHash('grace', 'hash');
    expect(await setUpLink.endWhereDone()).toBe(true);
    await users.create({ name: 'joan', isAdmin: true, isInvited: true });
    await users.delete(id);
    expect(await firstAdministrator.isValid(secret)).toBe(false);
  });

  test('is made once by the link, which then ends', async () => {
    const { users, firstAdministrator, issueSecret } = createParts(await open());
    const secret = (await issueSecret()) ?? '';
    expect(await firstAdministrator.isValid(secret)).toBe(true);
    expect(await firstAdministrator.create({ secret, ...ada })).toMatchObject({ isAdmin: true });
    expect(await firstAdministrator.isValid(secret)).toBe(false);
    const again = firstAdministrator.create({ secret, ...ada, name: 'mallory' });
    await expect(again).rejects.toMatchObject({ code: 'forbidden' });
    expect(await issueSecret()).toBeUndefined();
    expect(await users.listAdministratorNames()).toEqual(['ada']);
  });

  test('gets the link below the base path of the public address', async () => {
    const { firstAdministrator } = createParts(await open());
    const link = await firstAdministrator.issueLink();
    expect(link?.href).toMatch(
      /^https:\/\/hub\.example\.org\/team\/hub\/set-up\?secret=[\w-]{43}$/,
    );
  });

  test('is one, however many use the link at the same moment', async () => {
    const { users, firstAdministrator, issueSecret } = createParts(await open());
    const secret = (await issueSecret()) ?? '';
    const made = await Promise.allSettled(
      ['ada', 'grace', 'joan'].map((name) => firstAdministrator.create({ secret, ...ada, name })),
    );
    expect(made.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect(await users.listAdministratorNames()).toHaveLength(1);
  });

  test('is still to be made while those of the configuration have no password', async () => {
    const { users, credentials, issueSecret } = createParts(await open());
    await users.create({ name: 'configured', isAdmin: true });
    expect(await issueSecret()).toBeDefined();
    await credentials.setPasswordHash('configured', 'hash');
    expect(await issueSecret()).toBeUndefined();
  });

  test('is still to be made with the same link when storing the password failed', async () => {
    const database = await open();
    const { firstAdministrator, credentials, issueSecret } = createParts(database);
    const secret = (await issueSecret()) ?? '';
    const { setPasswordHash } = credentials;
    credentials.setPasswordHash = () => Promise.reject(new Error('no room'));
    await expect(firstAdministrator.create({ secret, ...ada })).rejects.toThrow('no room');
    credentials.setPasswordHash = setPasswordHash;
    expect(await firstAdministrator.create({ secret, ...ada })).toMatchObject({ isAdmin: true });
  });

  test('keeps the link when the password is not good enough', async () => {
    const { firstAdministrator, issueSecret } = createParts(await open());
    const secret = (await issueSecret()) ?? '';
    const weak = firstAdministrator.create({ secret, name: 'ada', password: 'short' });
    await expect(weak).rejects.toMatchObject({ code: 'bad_request', message: 'Too short.' });
    expect(await firstAdministrator.isValid(secret)).toBe(true);
  });

  test.each([
    ['users log in elsewhere', [provider]],
    ['there is another way to log in', [password, provider]],
  ])('is not made by a link where %s', async (_, authenticators) => {
    const { issueSecret } = createParts(await open(), authenticators);
    expect(await issueSecret()).toBeUndefined();
  });
});
