import { pino } from 'pino';
import { expect, test } from 'vitest';
import { HubError } from '../../platform/errors.ts';
import type { Authenticator } from '../../plugin/host/authenticator.ts';
import type { Identity } from '../users/identity-store.ts';
import type { User } from '../users/user-store.ts';
import { createSpawnHooks, type SpawnHooks } from './spawn-hooks.ts';

const ada: User = {
  id: 'user-1',
  name: 'ada',
  isAdmin: false,
  isInvited: false,
  isSuspended: false,
  createdAt: new Date(0),
  lastActivityAt: undefined,
  systemAccount: undefined,
  madeFor: undefined,
};
const calls: string[] = [];

function createHooks(options: {
  readonly authenticators: Readonly<Record<string, Partial<Authenticator>>>;
  readonly linkedTo: readonly string[];
  readonly requireCurrentLogin?: () => Promise<void>;
}): SpawnHooks {
  calls.length = 0;
  const list = Object.entries(options.authenticators).map(([name, abilities]) => ({
    name,
    authenticator: { login: { kind: 'request', label: name }, ...abilities } as Authenticator,
  }));
  const identities: Identity[] = options.linkedTo.map((authenticator) => ({
    id: `identity at ${authenticator}`,
    userId: ada.id,
    authenticator,
    issuer: authenticator,
    subject: `subject at ${authenticator}`,
    display: undefined,
    createdAt: new Date(0),
  }));
  return createSpawnHooks({
    authenticators: { list, find: (name) => list.find((each) => each.name === name) },
    identities: {
      listForUser: async () => identities,
      findAuthState: async () => ({ state: { token: 'kept' }, refreshedAt: new Date(0) }),
    },
    users: { findByName: async (name) => (name === 'ada' ? ada : undefined) },
    revalidation: { requireCurrentLogin: options.requireCurrentLogin ?? (async () => {}) },
    refreshesBeforeSpawn: options.requireCurrentLogin !== undefined,
    refreshesBeforeStop: options.requireCurrentLogin !== undefined,
    log: pino({ level: 'silent' }),
  });
}

const signal = AbortSignal.timeout(30_000);

/** An authenticator that notes how it is called. */
function noting(name: string): Partial<Authenticator> {
  return {
    beforeSpawn: async (user, { serverName }) => {
      calls.push(
        `${name}: before ${serverName} of ${user.subject} with ${JSON.stringify(user.authState)}`,
      );
      return { environment: { [`FROM_${name.toUpperCase()}`]: user.name } };
    },
    afterStop: async (user, { serverName }) => {
      calls.push(`${name}: after ${serverName} of ${user.subject}`);
    },
  };
}

test('every authenticator that knows the user adds to the environment of the server', async () => {
  const authenticators = { work: noting('work'), club: noting('club'), other: noting('other') };
  const hooks = createHooks({ authenticators, linkedTo: ['work', 'club', 'gone'] });
  expect(await hooks.beforeSpawn(ada, 'lab', signal)).toEqual({
    environment: { FROM_WORK: 'ada', FROM_CLUB: 'ada' },
    authStates: { work: { token: 'kept' }, club: { token: 'kept' } },
  });
  expect(calls).toEqual([
    'work: before lab of subject at work with {"token":"kept"}',
    'club: before lab of subject at club with {"token":"kept"}',
  ]);
});

test('who never logged in is known to the only authenticator by name', async () => {
  const hooks = createHooks({ authenticators: { work: noting('work') }, linkedTo: [] });
  expect((await hooks.beforeSpawn(ada, '', signal)).environment).toEqual({ FROM_WORK: 'ada' });
  const several = createHooks({ authenticators: { work: noting('work'), club: {} }, linkedTo: [] });
  const nothing = { environment: {}, authStates: {} };
  expect(await several.beforeSpawn(ada, '', signal)).toEqual(nothing);
});

test('an authenticator refuses a start by throwing, and so does a provider that knows the user no more', async () => {
  const refusing = { beforeSpawn: () => Promise.reject(new Error('the quota is used up')) };
  const hooks = createHooks({ authenticators: { work: refusing }, linkedTo: ['work'] });
  await expect(hooks.beforeSpawn(ada, '', signal)).rejects.toThrow('quota');
  const ended = createHooks({
    authenticators: { work: noting('work') },
    linkedTo: ['work'],
    requireCurrentLogin: () => Promise.reject(new HubError('forbidden', 'Your login has ended.')),
  });
  await expect(ended.beforeSpawn(ada, '', signal)).rejects.toThrow('Your login has ended.');
  expect(calls).toEqual([]);
});

test('after a stop all of them run, also when one fails', async () => {
  const failing = { afterStop: () => Promise.reject(new Error('no')) };
  const hooks = createHooks({
    authenticators: { broken: failing, work: noting('work') },
    linkedTo: ['broken', 'work'],
  });
  await hooks.afterStop('ada', 'lab');
  await hooks.afterStop('somebody who was deleted', 'lab');
  expect(calls).toEqual(['work: after lab of subject at work']);
});
