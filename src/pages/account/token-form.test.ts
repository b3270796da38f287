import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { createScopeCatalogue } from '../../rbac/scope-definitions.ts';
import { readTokenForm, requestedScopes, tokenFormQuery } from './token-form.ts';

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

  test('comes back from a login as it was typed', () => {
    const typed = new URLSearchParams([
      ['note', 'Größe & Co'],
      ['expires_in', '3600'],
      ['may', 'choose'],
      ['scope', 'servers!user'],
      ['scope', 'access:servers!server=bob smith/'],
      ['reach', '!group=staff'],
      ['reach_name', 'x'],
      ['scopes', 'read:hub proxy'],
    ]);
    const form = readTokenForm(typed);
    const again = readTokenForm(new URLSearchParams(tokenFormQuery(form)));
    expect(again).toEqual({ ...form, ticked: expect.arrayContaining([...form.ticked]) });
    expect(again.ticked).toHaveLength(2);
  });

  test('leaves out the last ticks where the address would be too long', () => {
    const many = Array.from({ length: 500 }, (_, index): [string, string] => [
      'scope',
      `access:services!service=s${index}`,
    ]);
    const form = readTokenForm(new URLSearchParams([['note', 'x'], ...many]));
    const query = tokenFormQuery(form);
    expect(query.length).toBeLessThanOrEqual(3800);
    const { ticked, note } = readTokenForm(new URLSearchParams(query));
    expect(note).toBe('x');
    expect(ticked.length).toBeGreaterThan(50);
    expect(form.ticked.slice(0, ticked.length)).toEqual(ticked);
  });

  test('encodes the address a few times, however much is ticked', () => {
    const many = Array.from({ length: 500 }, (_, index): [string, string] => [
      'scope',
      `${'é '.repeat(50)}${index}`,
    ]);
    const form = readTokenForm(new URLSearchParams(many));
    const encode = vi.spyOn(URLSearchParams.prototype, 'toString');
    onTestFinished(() => encode.mockRestore());
    const query = tokenFormQuery(form);
    expect(encode.mock.calls.length).toBeLessThan(15);
    expect(readTokenForm(new URLSearchParams(query)).ticked.length).toBeGreaterThan(5);
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
