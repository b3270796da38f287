import { describe, expect, test } from 'vitest';
import { createScopeCatalogue } from '../../../identity/rbac/scope-definitions.ts';
import { readTokenForm, requestedScopes } from './token-form.ts';

const catalogue = createScopeCatalogue();
const asked = (fields: string | [string, string][]) =>
  requestedScopes(readTokenForm(new URLSearchParams(fields)), catalogue);

describe('the form for a token', () => {
  test.each([
    ['', ['inherit']],
    ['may=everything', ['inherit']],
    ['may=identify', ['read:users:name!user', 'read:users:groups!user']],
    ['may=servers', ['access:servers!user', 'servers!user']],
    ['scopes=read:hub++proxy', ['read:hub', 'proxy']],
    ['scope=read:hub', ['read:hub']],
    ['may=choose&scope=read:hub&scope=servers!user&scopes=read:hub', ['read:hub', 'servers!user']],
    [
      'may=choose&scope=servers&scope=shutdown&reach=!group=staff',
      ['servers!group=staff', 'shutdown'],
    ],
    [
      'may=choose&scope=servers&scope=tokens!user&reach=user&reach_name=bob',
      ['servers!user=bob', 'tokens!user'],
    ],
    ['may=choose&scope=access:services&reach=!user=bob', ['access:services']],
  ])('asks for scopes: %s', (fields, scopes) => {
    expect(asked(fields)).toEqual({ scopes });
  });

  test.each([
    // Everything would be more than what was ticked.
    ['may=everything&scope=read:hub', 'another choice'],
    ['may=identify&scopes=read:hub', 'another choice'],
    ['may=choose', 'Tick at least one'],
    ['may=choose&scope=servers&reach=group', 'Type the name'],
    ['may=choose&scope=groups&reach=user&reach_name=bob', 'cannot be limited to this: user=bob'],
    ['may=choose&scope=servers&reach=planet&reach_name=mars', 'cannot be limited to this'],
  ])('asks again: %s', (fields, problem) => {
    const answer = asked(fields);
    expect('problem' in answer && String(answer.problem)).toContain(problem);
  });

  test('reads no more than anyone types', () => {
    const many = Array.from({ length: 900 }, (_, index): [string, string] => [
      'scope',
      `s${index}`,
    ]);
    const form = readTokenForm(new URLSearchParams([...many, ['note', 'n'.repeat(9000)]]));
    expect(form.ticked).toHaveLength(500);
    expect(form.note).toHaveLength(500);
    const long = readTokenForm(
      new URLSearchParams({ reach_name: 'n'.repeat(9000), reach: 'x'.repeat(9000) }),
    );
    expect([long.reachName.length, long.reach.length]).toEqual([300, 300]);
  });
});
