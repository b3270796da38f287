import { describe, expect, test } from 'vitest';
import { type AccessRules, judge } from './access-rules.ts';
import { claimAt, listAt, verifiedDomain } from './claims.ts';

const noRules: AccessRules = {
  gates: [],
  grants: [],
  allowedDomains: [],
  adminGroups: [],
  groupsClaim: undefined,
  rolesClaim: undefined,
};

test('claims are found by dotted paths, also when their names hold dots', () => {
  const claims = {
    realm_access: { roles: ['a'] },
    'https://example.org/groups': ['b'],
    deep: { 'x.y': 1 },
  };
  expect(claimAt(claims, 'realm_access.roles')).toEqual(['a']);
  expect(claimAt(claims, 'https://example.org/groups')).toEqual(['b']);
  expect(claimAt(claims, 'deep.x.y')).toBe(1);
  for (const path of [
    '',
    '.',
    'realm_access.',
    '__proto__',
    'constructor.name',
    'toString',
    'roles',
  ]) {
    expect(claimAt(claims, path)).toBeUndefined();
  }
});

test('a list of names is an array of texts or one text, and nothing else', () => {
  expect(listAt({ groups: ['a', 'b'] }, 'groups')).toEqual(['a', 'b']);
  expect(listAt({ groups: 'a' }, 'groups')).toEqual(['a']);
  for (const groups of [
    undefined,
    null,
    1,
    true,
    {},
    [1],
    ['a', null],
    [['a']],
    Array(2000).fill('a'),
  ]) {
    expect(listAt({ groups }, 'groups')).toBeUndefined();
  }
});

describe('allowed_domains (GHSA-c5c4-8r6x-56w3, CVE-2026-33175)', () => {
  const rules = { ...noRules, allowedDomains: ['example.org'] };
  const allowed = (claims: object) => judge({ email_verified: true, ...claims }, rules).allowed;

  test('admit verified addresses of exactly these domains', () => {
    expect(allowed({ email: 'ada@example.org' })).toBe(true);
    expect(allowed({ email: 'Ada@EXAMPLE.org' })).toBe(true);
  });

  test.for([
    'ada@evil.example@example.org',
    'ada@example.org@evil.example',
    'ada@sub.example.org',
    'ada@notexample.org',
    'ada@example.org.evil.example',
    'ada@example.org.',
    'ada@exаmple.org',
    '"ada@example.org',
    'ada@example.org ',
    'ada@example.org\n',
    '<ada@example.org>',
    '@example.org',
    'example.org',
    '',
  ])('refuse %j', (email) => {
    expect(allowed({ email })).toBe(false);
  });

  test.for([false, undefined, null, 'true', 1])(
    'refuse an address whose verification is %j',
    (verified) => {
      expect(allowed({ email: 'ada@example.org', email_verified: verified })).toBe(false);
      expect(
        verifiedDomain({ email: 'ada@example.org', email_verified: verified }),
      ).toBeUndefined();
    },
  );
});

describe('groups', () => {
  const rules: AccessRules = {
    ...noRules,
    groupsClaim: 'groups',
    adminGroups: ['bosses'],
    grants: [{ option: 'allowed_groups', claim: 'groups', anyOf: ['staff'] }],
  };

  test('members are allowed, administrators too, others are not', () => {
    expect(judge({ groups: ['staff'] }, rules)).toMatchObject({ allowed: true, admin: false });
    expect(judge({ groups: ['bosses'] }, rules)).toMatchObject({ allowed: true, admin: true });
    expect(judge({ groups: ['guests'] }, rules)).toMatchObject({ allowed: false, admin: false });
    expect(judge({ groups: ['Staff', 'staff '] }, rules)).toMatchObject({ allowed: false });
  });

  test.for([undefined, null, 42, {}, [42], { 0: 'staff' }])(
    'a claim that is %j denies, and the log can say why',
    (groups) => {
      const verdict = judge({ groups }, rules);
      expect(verdict).toMatchObject({ allowed: false, admin: false });
      expect(verdict.reasons.join()).toContain('allowed_groups cannot be checked');
    },
  );

  test('without rules nothing is decided here', () => {
    expect(judge({ groups: ['staff'] }, { ...noRules, groupsClaim: 'groups' })).toEqual({
      groups: ['staff'],
      reasons: [],
    });
  });

  test('every gate must be passed, whatever else grants', () => {
    const gated = {
      ...rules,
      gates: [{ option: 'hosted_domain', claim: 'hd', anyOf: ['example.org'] }],
    };
    expect(judge({ groups: ['bosses'] }, gated).allowed).toBe(false);
    expect(judge({ groups: ['bosses'], hd: 'evil.example' }, gated).allowed).toBe(false);
    expect(judge({ groups: ['bosses'], hd: 'example.org' }, gated).allowed).toBe(true);
    expect(judge({ groups: [], hd: 'example.org' }, gated).allowed).toBe(false);
  });
});
