import { pino } from 'pino';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { memorySpace } from '../../../test/support/memory-space.ts';
import { Secret } from '../../platform/config/secret.ts';
import { authenticatorSection } from '../../platform/config/sections-schema.ts';
import { createSealer } from '../../platform/crypto/sealer.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import { createKeyvMutex, type RunAlone } from '../../platform/store/keyv-space.ts';
import { openDatabase } from '../../platform/store/open-database.ts';
import type { AuthenticatedUser, RefreshResult } from '../../plugin/host/authenticator.ts';
import { createGroupStore } from '../users/group-store.ts';
import { createIdentityStore, type Identity, type IdentityStore } from '../users/identity-store.ts';
import { createUserInfoStore } from '../users/user-info-store.ts';
import { createUserStore, type User, type UserStore } from '../users/user-store.ts';
import { createAdmissionRules } from './admission-rules.ts';
import { createProfileSync } from './profile-sync.ts';
import { createUserRefresh, type UserRefresh } from './user-refresh.ts';

const log = pino({ level: 'silent' });
const runAtOnce: RunAlone = (_key, work) => work();
const start = Date.now();

let database: HubDatabase;
let users: UserStore;
let identities: IdentityStore;
let user: User;
let identity: Identity;
let nowMs: number;
/** How far the machine's clock was set back; the monotonic one knows nothing of it. */
let setBackMs: number;
let asked: AuthenticatedUser[];
let answer: () => Promise<RefreshResult>;

beforeEach(async () => {
  database = await openDatabase('sqlite::memory:', { directory: '.', log });
  const sealer = createSealer([new Secret('a test secret of some length')], 'auth-state');
  users = createUserStore(database);
  identities = createIdentityStore(database, { sealer });
  user = await users.create({ name: 'ada' });
  identity = await identities.link({
    userId: user.id,
    authenticator: 'work',
    issuer: 'https://i',
    subject: '1',
  });
  await identities.setAuthState(identity.id, { token: 'first' }, new Date(start));
  nowMs = start;
  setBackMs = 0;
  asked = [];
  answer = async () => ({ outcome: 'unchanged' });
});

afterEach(async () => {
  await database[Symbol.asyncDispose]();
});

function createRefresh(settings: object = {}, runAlone = runAtOnce): UserRefresh {
  const config = authenticatorSection.parse({
    allow_all: true,
    manage_groups: true,
    auth_refresh_age: 300,
    refresh_grace: 600,
    ...settings,
  });
  const rules = createAdmissionRules(config);
  return createUserRefresh({
    config,
    identities,
    rules,
    runAlone,
    log,
    now: () => nowMs - setBackMs,
    monotonicMs: () => nowMs,
    profiles: createProfileSync({
      config,
      rules,
      users,
      groups: createGroupStore(database),
      userInfo: createUserInfoStore(database),
      log,
    }),
    authenticators: {
      list: [
        {
          name: 'work',
          authenticator: {
            login: { kind: 'form', label: 'Work', fields: [] },
            authenticate: () => Promise.reject(new Error('nobody logs in')),
            refreshUser: (authenticated) => {
              asked.push(authenticated);
              return answer();
            },
          },
        },
      ],
    },
  });
}

const login = () => ({ user, authenticator: 'work', identityId: identity.id });

test('the provider is asked only when auth_refresh_age has passed', async () => {
  const refresh = createRefresh();
  nowMs = start + 299_000;
  await refresh.refreshIfDue(login());
  expect(asked).toHaveLength(0);
  nowMs = start + 300_000;
  expect(await refresh.refreshIfDue(login())).toEqual({ outcome: 'current' });
  expect(asked).toMatchObject([
    { name: 'ada', issuer: 'https://i', subject: '1', authState: { token: 'first' } },
  ]);
  nowMs += 299_000;
  await refresh.refreshIfDue(login());
  expect(asked).toHaveLength(1);
});

test('a clock that is set back keeps no login from being refreshed', async () => {
  const refresh = createRefresh();
  await refresh.refreshIfDue(login());
  setBackMs = 3_600_000;
  nowMs = start + 300_000;
  await refresh.refreshIfDue(login());
  expect(asked).toHaveLength(1);
  nowMs += 299_000;
  await refresh.refreshIfDue(login());
  expect(asked).toHaveLength(1);
  nowMs += 1_000;
  await refresh.refreshIfDue(login());
  expect(asked).toHaveLength(2);
});

test('twenty requests at once ask the provider once', async () => {
  const refresh = createRefresh();
  nowMs = start + 400_000;
  const gate = Promise.withResolvers<RefreshResult>();
  answer = () => gate.promise;
  const waiting = Array.from({ length: 20 }, () => refresh.refreshIfDue(login()));
  gate.resolve({ outcome: 'unchanged' });
  expect(await Promise.all(waiting)).toHaveLength(20);
  expect(asked).toHaveLength(1);
});

test('of several processes one asks the provider, and the others take its word', async () => {
  const mutex = () => createKeyvMutex(space, { lifetimeMs: 20_000 });
  const space = memorySpace<string>();
  const processes = [mutex(), mutex(), mutex()].map((runAlone) => createRefresh({}, runAlone));
  nowMs = start + 400_000;
  const gate = Promise.withResolvers<RefreshResult>();
  answer = () => gate.promise;
  const waiting = processes.map((refresh) => refresh.refreshIfDue(login()));
  await expect.poll(() => asked).toHaveLength(1);
  gate.resolve({ outcome: 'unchanged' });
  expect(await Promise.all(waiting)).toEqual(Array(3).fill({ outcome: 'current' }));
  expect(asked).toHaveLength(1);
});

test('the refresh of a process that was killed meanwhile is done by another', async () => {
  const space = memorySpace<string>();
  await space.update('killed', () => undefined);
  await space.update(identity.id, () => ({ value: 'killed', lifetimeMs: 300 }));
  const refresh = createRefresh({}, createKeyvMutex(space, { lifetimeMs: 20_000 }));
  nowMs = start + 400_000;
  await refresh.refreshIfDue(login());
  expect(asked).toHaveLength(1);
});

test('what another process has refreshed is not asked again', async () => {
  const refresh = createRefresh();
  nowMs = start + 400_000;
  await identities.setRefreshedAt(identity.id, new Date(nowMs - 1000));
  expect(await refresh.refreshIfDue(login())).toEqual({ outcome: 'current' });
  expect(asked).toHaveLength(0);
});

test('an age of 0 turns it off, but a server start may still ask', async () => {
  const refresh = createRefresh({ auth_refresh_age: 0 });
  nowMs = start + 1e9;
  await refresh.refreshIfDue(login());
  expect(asked).toHaveLength(0);
  await refresh.refreshNow(login());
  expect(asked).toHaveLength(1);
});

test('a changed user is brought up to date, and the new state is kept', async () => {
  const refresh = createRefresh();
  nowMs = start + 400_000;
  answer = async () => ({
    outcome: 'updated',
    user: { name: 'ada', admin: true, groups: ['staff'], authState: { token: 'second' } },
  });
  expect(await refresh.refreshIfDue(login())).toMatchObject({
    outcome: 'updated',
    user: { name: 'ada', isAdmin: true },
  });
  expect(await createGroupStore(database).groupNamesOf('ada')).toEqual(['staff']);
  expect(await identities.findAuthState(identity.id)).toEqual({
    state: { token: 'second' },
    refreshedAt: new Date(nowMs),
  });
});

test.for([
  ['the provider says so', { outcome: 'login_required', message: 'Signed out.' }, {}],
  [
    'the rules no longer admit the user',
    { outcome: 'updated', user: { name: 'ada', allowed: false } },
    {},
  ],
  [
    'the answer is about another user',
    { outcome: 'updated', user: { name: 'ada', subject: '2' } },
    {},
  ],
  ['the user has been blocked', { outcome: 'unchanged' }, { blocked_users: ['ada'] }],
] as const)('a new login is required when %s', async ([, result, settings]) => {
  const refresh = createRefresh(settings);
  nowMs = start + 400_000;
  answer = async () => result;
  expect(await refresh.refreshIfDue(login())).toMatchObject({ outcome: 'login_required' });
});

test('a new login is required when the identity is no longer linked', async () => {
  const refresh = createRefresh();
  nowMs = start + 400_000;
  await identities.unlink(user.id, identity.id);
  expect(await refresh.refreshIfDue(login())).toMatchObject({ outcome: 'login_required' });
});

test.for([
  ['says that it is unavailable', async (): Promise<RefreshResult> => ({ outcome: 'unavailable' })],
  ['fails', (): Promise<RefreshResult> => Promise.reject(new Error('ECONNREFUSED'))],
] as const)('a login survives a provider that %s, for refresh_grace', async ([, unavailable]) => {
  const refresh = createRefresh();
  answer = unavailable;
  nowMs = start + 400_000;
  expect(await refresh.refreshIfDue(login())).toEqual({ outcome: 'current' });
  expect(await refresh.refreshIfDue(login())).toEqual({ outcome: 'current' });
  expect(asked).toHaveLength(1);

  nowMs = start + 431_000;
  expect(await refresh.refreshIfDue(login())).toEqual({ outcome: 'current' });
  expect(asked).toHaveLength(2);

  nowMs = start + 900_000;
  expect(await refresh.refreshIfDue(login())).toMatchObject({ outcome: 'login_required' });
});

test('a login without an identity at a provider is left alone', async () => {
  const refresh = createRefresh();
  nowMs = start + 400_000;
  expect(await refresh.refreshIfDue({ ...login(), identityId: undefined })).toEqual({
    outcome: 'current',
  });
  expect(asked).toHaveLength(0);
});
