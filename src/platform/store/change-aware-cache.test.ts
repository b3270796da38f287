import { pino } from 'pino';
import { describe, expect, test } from 'vitest';
import { createChangeAwareCache, maxTtlMs, watchChanges } from './change-aware-cache.ts';
import { type ChangeSubject, createChangeListeners, tokensRevoked } from './change-subject.ts';

interface Right {
  readonly sessionId?: string;
  readonly tokenId?: string;
}

function world() {
  const listeners = createChangeListeners({ log: pino({ level: 'silent' }) });
  let timeMs = 0;
  let isLost = false;
  const changes = watchChanges({
    onChange: listeners.add,
    now: Date.now,
    changeFeed: { knownAtMs: () => timeMs, isLost: () => isLost, lossCount: 0 },
  });
  const endOf = ({ sessionId, tokenId }: Right) => [sessionId, tokenId];
  return {
    listeners,
    changes,
    skipMs(ms: number) {
      timeMs += ms;
    },
    lose(lost: boolean) {
      isLost = lost;
    },
    rights: createChangeAwareCache<Right>({ changes, max: 10, invalidatedBy: { endOf } }),
    people: createChangeAwareCache<Right>({
      changes,
      max: 10,
      invalidatedBy: { newUsers: true },
    }),
  };
}

type World = ReturnType<typeof world>;
const mine: Right = { sessionId: 'my login', tokenId: 'my token' };

const changes: [string, ChangeSubject, Record<'rights' | 'people', boolean>][] = [
  ['any right', { kind: 'rights_changed' }, { rights: false, people: false }],
  ['groups', { kind: 'groups_changed' }, { rights: false, people: false }],
  ['services at run time', { kind: 'runtime_services_changed' }, { rights: false, people: false }],
  ['a loss of changes', { kind: 'all' }, { rights: false, people: false }],
  ['a new user', { kind: 'user_added' }, { rights: true, people: false }],
  [
    'a server of a user',
    { kind: 'server_changed', serverId: 'my server' },
    { rights: true, people: true },
  ],
  ['the hubs there are', { kind: 'instances_changed' }, { rights: true, people: true }],
  ['a service', { kind: 'services_changed' }, { rights: true, people: true }],
  [
    'the end of its login',
    { kind: 'session_ended', sessionId: 'my login' },
    { rights: false, people: true },
  ],
  ['the end of its token', tokensRevoked(['other', 'my token']), { rights: false, people: true }],
  [
    'the end of another login',
    { kind: 'session_ended', sessionId: 'other' },
    { rights: true, people: true },
  ],
  [
    'the end of so many tokens that they are not named',
    tokensRevoked(Array.from({ length: 101 }, (_, index) => `token ${index}`)),
    { rights: false, people: false },
  ],
];

describe.each(changes)('%s', (_, subject, isKept) => {
  const holds = (cache: World['rights']) => cache.get('key') === mine;

  test('voids what is remembered and hangs on it, and nothing else', async () => {
    const { listeners, rights, people } = world();
    for (const cache of [rights, people]) await cache.getOrLoad('key', async () => mine);
    listeners.callAll(subject);
    expect({ rights: holds(rights), people: holds(people) }).toEqual(isKept);
  });

  test('voids an answer that was begun before it and comes after it', async () => {
    const { listeners, rights, people } = world();
    const { promise, resolve } = Promise.withResolvers<Right>();
    const answers = [rights, people].map((cache) => cache.getOrLoad('key', () => promise));
    const beginnings = { rights: rights.begin(), people: people.begin() };
    listeners.callAll(subject);
    resolve(mine);
    await Promise.all(answers);
    expect({ rights: holds(rights), people: holds(people) }).toEqual(isKept);
    rights.put('key', mine, beginnings.rights);
    people.put('key', mine, beginnings.people);
    expect({ rights: holds(rights), people: holds(people) }).toEqual(isKept);
  });
});

test('what changed is remembered again once it was read after the change', async () => {
  const { listeners, changes, skipMs } = world();
  const infos = createChangeAwareCache<{ readonly userId: string; readonly name: string }>({
    changes,
    max: 10,
    invalidatedBy: { changeOf: ({ userId }) => userId },
  });
  const read = (name: string) => infos.getOrLoad('ada', async () => ({ userId: 'user 1', name }));
  expect((await read('Ada'))?.name).toBe('Ada');
  listeners.callAll({ kind: 'user_info_changed', userId: 'user 2' });
  expect(infos.get('ada')?.name).toBe('Ada');
  listeners.callAll({ kind: 'user_info_changed', userId: 'user 1' });
  expect(infos.get('ada')).toBeUndefined();
  skipMs(1);
  expect((await read('Ada Lovelace'))?.name).toBe('Ada Lovelace');
  expect(infos.get('ada')?.name).toBe('Ada Lovelace');
});

test('what ended is known for longer than anything is remembered', async () => {
  const { listeners, rights, skipMs } = world();
  const beginning = rights.begin();
  for (let second = 0; second < maxTtlMs / 1000; second += 1) {
    listeners.callAll({
      kind: 'session_ended',
      sessionId: second === 0 ? 'my login' : `${second}`,
    });
    rights.put('key', mine, beginning);
    expect(rights.get('key'), `after ${second} s`).toBeUndefined();
    skipMs(1000);
  }
  rights.put('key', mine, beginning);
  expect(rights.get('key')).toBeUndefined();
});

test('an answer lasts a minute at most, in case that news of a change is lost', async () => {
  const { changes, people, skipMs } = world();
  await people.getOrLoad('key', async () => mine);
  skipMs(maxTtlMs - 1);
  expect(people.get('key')).toBe(mine);
  skipMs(1);
  expect(people.get('key')).toBeUndefined();
  expect(() => createChangeAwareCache({ changes, max: 1, ttlMs: maxTtlMs + 1 })).toThrow(
    RangeError,
  );
});

test('nothing remembered is used while the feed of changes is lost, nor what was asked meanwhile', async () => {
  const { people, lose } = world();
  await people.getOrLoad('key', async () => mine);
  const other: Right = { sessionId: 'other' };
  lose(true);
  expect(people.get('key')).toBeUndefined();
  expect(await people.getOrLoad('key', async () => other)).toBe(other);
  lose(false);
  expect(people.get('key')).toBeUndefined();
});

test('so many ends that not all can be kept void everything', async () => {
  const { listeners, people } = world();
  await people.getOrLoad('key', async () => mine);
  for (let index = 0; index <= 50_000; index += 1) {
    listeners.callAll({ kind: 'session_ended', sessionId: String(index) });
  }
  expect(people.get('key')).toBeUndefined();
});
