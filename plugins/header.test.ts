import { describe, expect, test } from 'vitest';
import { authenticatorContract, createTestHost } from '../test/contract/testing.ts';
import plugin from './header.ts';

test.for(authenticatorContract({ plugin, options: {} }))('keeps the contract: $name', ({ run }) =>
  run(),
);

async function identify(
  headers: Readonly<Record<string, string>>,
  { options = {}, isTrustedProxy = true }: { options?: object; isTrustedProxy?: boolean } = {},
) {
  const host = await createTestHost();
  const authenticator = await plugin.create(plugin.optionsSchema.parse(options), host);
  return authenticator.identify({
    address: '192.0.2.1',
    peerAddress: '192.0.2.9',
    isTrustedProxy,
    userAgent: '',
    headers,
    signal: AbortSignal.timeout(300_000),
  });
}

const withGroups = { groups_header: 'X-Groups', email_header: 'X-Email' };

describe('a header of a trusted proxy', () => {
  test('names the user, with e-mail address and groups', async () => {
    const headers = {
      'x-forwarded-user': 'ada',
      'x-email': 'ada@example.org',
      'x-groups': 'a, b ,,c',
    };
    expect(await identify(headers, { options: withGroups })).toEqual({
      outcome: 'authenticated',
      user: {
        name: 'ada',
        display: 'ada@example.org',
        info: { displayName: undefined, email: 'ada@example.org', isEmailVerified: true },
        groups: ['a', 'b', 'c'],
      },
    });
  });

  test('tells the display name, and nothing of it without such headers', async () => {
    const headers = { 'x-forwarded-user': 'ada', 'x-name': 'Zoë' };
    const named = await identify(headers, { options: { name_header: 'X-Name' } });
    expect(named).toMatchObject({ user: { info: { displayName: 'Zoë' } } });
    expect(await identify(headers)).toEqual({ outcome: 'authenticated', user: { name: 'ada' } });
    const twice = { ...headers, 'x-name': 'Zoë\nEve' };
    expect(await identify(twice, { options: { name_header: 'X-Name' } })).toMatchObject({
      outcome: 'refused',
    });
  });

  test('holds names in UTF-8, whichever way HTTP carries them', async () => {
    const asBytes = Buffer.from('zoë').toString('latin1');
    expect(await identify({ 'x-forwarded-user': asBytes })).toMatchObject({
      user: { name: 'zoë' },
    });
    expect(await identify({ 'x-forwarded-user': 'zo\u00eb' })).toMatchObject({
      user: { name: 'zoë' },
    });
  });

  test('that came twice is refused, also joined into one', async () => {
    for (const headers of [
      { 'x-forwarded-user': 'eve\nada' },
      { 'x-forwarded-user': 'eve, ada' },
      { 'x-forwarded-user': 'ada', 'x-groups': 'admins\nusers' },
      { 'x-forwarded-user': 'ada', 'x-email': 'a@b\nc@d' },
    ]) {
      expect(await identify(headers, { options: withGroups })).toMatchObject({
        outcome: 'refused',
        reason: 'invalid_response',
      });
    }
  });

  test('that is missing or empty names no user', async () => {
    for (const headers of [{}, { 'x-forwarded-user': '' }, { 'x-forwarded-user': '  ' }]) {
      expect(await identify(headers)).toEqual({ outcome: 'refused', reason: 'credentials' });
    }
  });

  test('decides by groups who may log in and who administers', async () => {
    const options = { ...withGroups, allowed_groups: ['staff'], admin_groups: ['admins'] };
    const of = (groups: string) =>
      identify({ 'x-forwarded-user': 'ada', 'x-groups': groups }, { options });
    expect(await of('staff')).toMatchObject({ user: { allowed: true, admin: false } });
    expect(await of('admins')).toMatchObject({ user: { allowed: true, admin: true } });
    expect(await of('others')).toMatchObject({ user: { allowed: false, admin: false } });
    expect(await identify({ 'x-forwarded-user': 'ada' }, { options })).toMatchObject({
      user: { allowed: false },
    });
  });
});

test('a header from any other address is not believed', async () => {
  const result = await identify({ 'x-forwarded-user': 'admin' }, { isTrustedProxy: false });
  expect(result).toEqual({ outcome: 'refused', reason: 'credentials' });
});

test('a header that browsers set themselves cannot name the user', async () => {
  const options = plugin.optionsSchema.parse({ user_header: 'User-Agent', allowed_groups: ['a'] });
  const found = plugin.findProblems?.(options, await createTestHost()) ?? [];
  expect(found.map(({ option }) => option)).toEqual(['user_header', 'allowed_groups']);
});

describe('the secret of the proxy', () => {
  const secret = 'a secret of the proxy';

  test.for([
    ['not at all', {}],
    ['wrong', { 'x-hub-proxy-secret': 'a secret of the proxi' }],
    ['empty', { 'x-hub-proxy-secret': '' }],
    ['twice', { 'x-hub-proxy-secret': `${secret}\n${secret}` }],
    ['in another header', { 'x-secret': secret }],
  ] as const)('sent %s lets no header name a user', async ([, headers]) => {
    const result = await identify(
      { 'x-forwarded-user': 'admin', ...headers },
      { options: { secret } },
    );
    expect(result).toEqual({ outcome: 'refused', reason: 'credentials' });
  });

  test('lets the header name the user', async () => {
    const headers = { 'x-forwarded-user': 'ada', 'x-hub-proof': secret };
    const result = await identify(headers, { options: { secret, secret_header: 'X-Hub-Proof' } });
    expect(result).toMatchObject({ outcome: 'authenticated', user: { name: 'ada' } });
  });

  test('travels in a header that no app gets to see', () => {
    expect(plugin.optionsSchema.safeParse({ secret_header: 'X-Proof' }).success).toBe(false);
  });

  test('is required where programs of this machine are believed', async () => {
    const host = await createTestHost({ trustedLocalAddress: '127.0.0.1' });
    const problemsOf = (options: object) =>
      plugin.findProblems?.(plugin.optionsSchema.parse(options), host) ?? [];
    expect(problemsOf({})).toEqual([
      { option: 'secret', message: expect.stringContaining('127.0.0.1') },
    ]);
    expect(problemsOf({ secret })).toEqual([]);
    await expect(async () => plugin.create(plugin.optionsSchema.parse({}), host)).rejects.toThrow(
      'secret: is needed',
    );
  });
});
