import { describe, expect, test } from 'vitest';
import { formatScopeList } from '../../platform/protocol/scope-list.ts';
import { createMembership } from '../rbac/membership.ts';
import { expandScopes } from '../rbac/scope.ts';
import { createScopeCatalogue } from '../rbac/scope-definitions.ts';
import type { Client } from './clients/client.ts';
import { coversScopes, resolveRequestedScopes, type ScopeContext } from './requested-scopes.ts';

const required = ['read:users:name!user', 'read:users:groups!user', 'access:services!service=wiki'];

function context(
  allowedScopes: readonly string[],
  grantedScopes: readonly string[] = ['self'],
): ScopeContext {
  const catalogue = createScopeCatalogue({
    'custom:wiki:edit': { description: 'Edit pages.', subscopes: [] },
  });
  const owner = { kind: 'user', name: 'alice' } as const;
  const client: Client = {
    clientId: 'service-wiki',
    kind: 'service',
    name: 'wiki',
    origin: 'https://hub.example',
    redirectUris: ['/cb'],
    isPublic: false,
    allowedScopes,
    accessScope: 'access:services!service=wiki',
    skipsConsent: false,
    identity: { clientId: 'service-wiki', service: 'wiki' },
  };
  return {
    client,
    owner,
    catalogue,
    grantedScopes: expandScopes([...grantedScopes, 'access:services!service=wiki'], {
      catalogue,
      owner,
    }),
    membership: createMembership(new Map([['team', new Set(['alice', 'bob'])]])),
  };
}

const roles: Record<string, readonly string[]> = {
  reader: ['read:users!user', 'read:servers!user'],
  self: ['admin:users'],
};

async function resolve(requested: string | undefined, scopeContext: ScopeContext) {
  const findRole = async (name: string) => (roles[name] ? { scopes: roles[name] } : undefined);
  const granted = await resolveRequestedScopes(requested, scopeContext, findRole);
  expect(granted.slice(0, 3)).toEqual(required);
  return granted.slice(3);
}

const invalidScope = expect.objectContaining({ error: 'invalid_scope' });

describe('without a scope parameter', () => {
  test('gives everything the client is allowed and the user holds', async () => {
    expect(await resolve(undefined, context(['servers!user', 'shutdown']))).toEqual([
      'servers!user',
    ]);
  });

  test('leaves out what means nothing for this client', async () => {
    expect(await resolve(undefined, context(['access:servers!server', 'no-such-scope']))).toEqual(
      [],
    );
  });

  test('replaces role names', async () => {
    expect(await resolve(undefined, context(['reader']))).toEqual([
      'read:users!user',
      'read:servers!user',
    ]);
  });
});

describe('with a scope parameter', () => {
  test('gives what was asked for and identity and access, nothing else', async () => {
    const scopes = context(['servers!user', 'read:users!user']);
    expect(await resolve('read:servers!user', scopes)).toEqual(['read:servers!user']);
    expect(await resolve('access:services!service=wiki', scopes)).toEqual([]);
    expect(await resolve('read:users:name!user=alice', scopes)).toEqual([
      'read:users:name!user=alice',
    ]);
    expect(await resolve('identify', scopes)).toEqual([]);
  });

  test('refuses the whole request for one scope that the client is not allowed', async () => {
    const scopes = context(['read:servers!user']);
    await expect(resolve('read:servers!user servers!user', scopes)).rejects.toEqual(invalidScope);
    await expect(resolve('read:servers', scopes)).rejects.toEqual(invalidScope);
    await expect(resolve('read:servers!user=bob', scopes)).rejects.toEqual(invalidScope);
    await expect(resolve('access:services', scopes)).rejects.toEqual(invalidScope);
    await expect(resolve('access:services!service=forum', scopes)).rejects.toEqual(invalidScope);
  });

  test.each([
    'no-such-scope',
    'read:users!planet=mars',
    'a  b',
    ' a',
    'read:users\ttokens',
    'read:"',
    'é',
  ])('refuses %j', async (requested) => {
    await expect(resolve(requested, context(['inherit']))).rejects.toEqual(invalidScope);
  });

  test('accepts a role by its name when the client is allowed what is in it', async () => {
    expect(await resolve('reader', context(['read:users!user', 'read:servers!user']))).toEqual([
      'read:users!user',
      'read:servers!user',
    ]);
    await expect(resolve('reader', context(['read:users!user']))).rejects.toEqual(invalidScope);
  });

  test('takes a name for the scope when there is a role of the same name', async () => {
    expect(await resolve('self', context(['self']))).toEqual(['self']);
  });

  test('narrows a scope to the part that the user holds', async () => {
    const scopes = context(['read:users:activity'], ['self', 'read:users:activity!group=team']);
    expect((await resolve('read:users:activity', scopes)).sort()).toEqual([
      'read:users:activity!group=team',
      'read:users:activity!user=alice',
    ]);
  });

  test('leaves out what the user does not hold', async () => {
    expect(await resolve('admin:groups', context(['admin:groups']))).toEqual([]);
    expect(await resolve('custom:wiki:edit', context(['custom:wiki:edit']))).toEqual([]);
    expect(
      await resolve('custom:wiki:edit', context(['custom:wiki:edit'], ['custom:wiki:edit'])),
    ).toEqual(['custom:wiki:edit']);
  });
});

describe('inherit', () => {
  test('is given only to a client that is allowed it', async () => {
    expect(await resolve('inherit', context(['inherit']))).toEqual(['inherit']);
    await expect(resolve('inherit', context(['self']))).rejects.toEqual(invalidScope);
  });

  test('allows the client nothing else: no scope that is not listed, and no role', async () => {
    for (const requested of ['servers!user', 'shutdown', 'reader', 'inherit shutdown']) {
      await expect(resolve(requested, context(['inherit']))).rejects.toEqual(invalidScope);
    }
    expect(await resolve('servers!user', context(['inherit', 'self']))).toEqual(['servers!user']);
  });
});

describe('earlier grants', () => {
  test('cover what is the same or less', () => {
    const scopes = context([]);
    expect(coversScopes(['servers!user'], ['read:servers!user=alice'], scopes)).toBe(true);
    expect(
      coversScopes(
        ['read:servers!user', 'tokens!user'],
        ['tokens!user', 'read:servers!user'],
        scopes,
      ),
    ).toBe(true);
    expect(coversScopes(['read:servers!user'], ['servers!user'], scopes)).toBe(false);
    expect(coversScopes([], ['read:servers!user'], scopes)).toBe(false);
  });

  test('cover inherit only when they were inherit', () => {
    const scopes = context([]);
    expect(coversScopes([...scopes.grantedScopes], ['inherit'], scopes)).toBe(false);
    expect(coversScopes(['inherit'], ['inherit'], scopes)).toBe(true);
  });
});

test('writes scopes as one value, whatever the names in them', () => {
  expect(formatScopeList(['self', 'read:users!user=zoë "x" \\'])).toBe(
    'self read:users!user=zo%C3%AB%20%22x%22%20%5C',
  );
});

test('knows what the client may have in encoded form, and nothing else', async () => {
  const named = 'read:users!user=alice é';
  const encoded = 'read:users!user=alice%20%C3%A9';
  await expect(resolve(encoded, context([]))).rejects.toEqual(invalidScope);
  // Allowed but not held: recognised, and left out.
  expect(await resolve(encoded, context([named]))).toEqual([]);
});
