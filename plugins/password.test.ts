import { describe, expect, test } from 'vitest';
import {
  authenticatorContract,
  createTestHost,
  type TestHostOptions,
} from '../test/contract/testing.ts';
import { anyRequest } from '../test/support/plugin-login.ts';
import plugin from './password.ts';

const password = 'purple elephants dance';

test.for(
  authenticatorContract({
    plugin,
    options: {},
    host: { passwords: { ada: password } },
    form: {
      valid: { username: 'ada', password },
      userName: 'ada',
      wrong: [
        { username: 'ada', password: 'purple elephants sleep' },
        { username: 'bob', password: 'purple elephants jump' },
        { username: 'ada', password: password.toUpperCase() },
        { username: 'ada', password: `${password} ` },
      ],
      secretField: 'password',
    },
  }),
)('keeps the contract: $name', ({ run }) => run());

async function create(options: object = {}, hostOptions: TestHostOptions = {}) {
  const host = await createTestHost({ passwords: { ada: password }, ...hostOptions });
  const authenticator = await plugin.create(plugin.optionsSchema.parse(options), host);
  const login = (username: string, typed: string) =>
    authenticator.authenticate(
      new Map(Object.entries({ username, password: typed })),
      anyRequest(),
    );
  return { host, authenticator, login };
}

test('it keeps its own accounts', async () => {
  expect((await create()).authenticator.ownsAccounts).toBe(true);
});

test('an unknown user costs a comparison, too', async () => {
  const compared: (string | undefined)[] = [];
  const { login } = await create(
    {},
    {
      passwordHasher: {
        hash: async () => '',
        verify: async (_password, hash) => {
          compared.push(hash);
          return { matches: false, needsRehash: false };
        },
      },
    },
  );
  await login('nobody', 'whatever it is');
  await login('ada', 'whatever it is');
  expect(compared).toEqual([undefined, expect.stringContaining('$argon2id$')]);
});

test('a password longer than any honest one is refused before it is hashed', async () => {
  const { login, host } = await create(
    {},
    {
      passwordHasher: {
        hash: async () => '',
        verify: () => Promise.reject(new Error('must not be called')),
      },
    },
  );
  expect(await login('ada', 'é'.repeat(513))).toMatchObject({ outcome: 'refused' });
  expect(host.logged).toEqual([]);
});

test('a hash of former times is replaced at the next login', async () => {
  const verified = { matches: true, needsRehash: true };
  const passwordHasher = { hash: async () => 'new hash', verify: async () => verified };
  const { login, host } = await create({}, { passwordHasher });
  await login('ada', password);
  expect(host.storedCredentials.get('ada')?.passwordHash).toBe('new hash');
});

test('who must choose a new password is told so, and still must after a rehash', async () => {
  const passwordHasher = {
    hash: async () => 'new hash',
    verify: async () => ({ matches: true, needsRehash: true }),
  };
  const { login, host } = await create({}, { mustChange: ['ada'] });
  const later = await create({}, { mustChange: ['ada'], passwordHasher });
  expect(await login('ada', password)).toMatchObject({ user: { mustChangePassword: true } });
  await later.login('ada', password);
  expect(host.storedCredentials.get('ada')?.mustChange).toBe(true);
  expect(later.host.storedCredentials.get('ada')?.mustChange).toBe(true);
});

describe('a new password', () => {
  test.for([
    ['too short', 'Tr0ub4dor&3', /at least 12 characters/],
    ['too long', 'é'.repeat(513), /too long/],
    ['one character again and again', 'aaaaaaaaaaaaaaaa', /too repetitive/],
    ['two characters again and again', 'abababababababab', /too repetitive/],
    ['common, made longer', 'password123456', /too common/],
    ['common, in disguise', 'P@ssw0rd-1234', /too common/],
    ['common, with separators', 'let-me-in let-me-in', /too common/],
    ['a famous phrase', 'correct horse battery staple', /too common/],
    ['the user name', 'lovelace2026!', /your username/],
    ['the user name in disguise', 'L0velace-2026', /your username/],
    ['the name of the site', 'Analytical-2026', /site’s name/],
  ] as const)('that is %s is refused', async ([, text, expected]) => {
    const { authenticator } = await create({}, { hubTitle: 'Analytical' });
    const problem = authenticator.passwordProblem?.(text, { userName: 'lovelace' });
    const { en, de } = problem as Record<'en' | 'de', string>;
    expect(en).toMatch(expected);
    expect(de).toMatch(/Passwort/);
  });

  test.for([
    'purple elephants dance',
    'Zürich liegt am See',
    'kX9#mQ2$vL7@',
    'four random words here',
  ])('%j is accepted', async (text) => {
    const { authenticator } = await create();
    expect(authenticator.passwordProblem?.(text, { userName: 'ada' })).toBeUndefined();
  });

  test('is judged by the options', async () => {
    const { authenticator } = await create({ min_length: 20, refuse_common: false });
    const problemOf = (text: string) =>
      (authenticator.passwordProblem?.(text, { userName: 'ada' }) as Record<string, string>)?.[
        'en'
      ];
    expect(problemOf('kX9#mQ2$vL7@')).toMatch(/at least 20/);
    expect(problemOf('correct horse battery staple')).toBeUndefined();
  });

  test('counts characters as people do', async () => {
    const { authenticator } = await create({ min_length: 8 });
    const problem = authenticator.passwordProblem?.('🐘🦒🦓🐆', { userName: 'ada' });
    expect(problem).toMatchObject({ en: expect.stringContaining('at least 8') });
  });
});
