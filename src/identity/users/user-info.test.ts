import { describe, expect, test } from 'vitest';
import { changedInfo, infoFromClaims, noInfo, searchTextOf } from './user-info.ts';

describe('what a provider claims', () => {
  const nameOf = (displayName: string) => infoFromClaims({ displayName }, 'work').displayName;

  test.each([
    ['Ada Lovelace', 'Ada Lovelace'],
    ['  Ada \t\n Lovelace ', 'Ada Lovelace'],
    ['Zoe\u0308', 'Zo\u00eb'],
    ['عبد الله', 'عبد الله'],
    ['क्\u200dष', 'क्\u200dष'],
    ['<b>Ada</b>', '<b>Ada</b>'],
    ['Ada\u202eecalevoL', 'AdaecalevoL'],
    ['Ada\u2066\u0000\u001b[31m\u007f', 'Ada[31m'],
    ['Ada\u2028Lovelace', 'Ada Lovelace'],
    ['Ada\ud800', 'Ada\ufffd'],
    ['\u200b\u202e', undefined],
    ['', undefined],
    ['x'.repeat(300), 'x'.repeat(255)],
    ['😀'.repeat(300), '😀'.repeat(255)],
  ])('names %j, which is shown as %j', (claimed, shown) => {
    expect(nameOf(claimed)).toBe(shown);
  });

  test('is cut where it is endless, and marks do not pile up', () => {
    expect(nameOf('x'.repeat(5_000_000))).toHaveLength(255);
    expect(nameOf(`a${'\u0301\u0302\u0303\u0304\u0305\u0306'.repeat(20)}b`)?.length).toBeLessThan(
      8,
    );
  });

  test.each([
    'ada',
    'ada@',
    'ada@a@example.org',
    'ada @example.org',
    'ada\u0000@example.org',
    'ada@example.org\r\nBcc: eve@example.org',
    '<ada@example.org>',
    `${'x'.repeat(250)}@example.org`,
  ])('is no e-mail address: %j', (email) => {
    const { email: kept, isEmailVerified } = infoFromClaims({ email, isEmailVerified: true }, 'w');
    expect([kept, isEmailVerified]).toEqual([undefined, false]);
  });

  test('is a verified address only where the provider says so', () => {
    const email = 'ada@example.org';
    expect(infoFromClaims({ email }, 'w')).toMatchObject({ email, isEmailVerified: false });
    expect(infoFromClaims({ email, isEmailVerified: true }, 'w').isEmailVerified).toBe(true);
  });

  test.each([
    'http://example.org/ada.png',
    'javascript:alert(1)',
    'data:image/svg+xml,<svg/>',
    'https://user:secret@example.org/',
    'https://example.org/a b',
    `https://example.org/${'x'.repeat(2_000)}`,
    'ada.png',
  ])('is no picture: %j', (pictureUrl) => {
    expect(infoFromClaims({ pictureUrl }, 'w').pictureUrl).toBeUndefined();
  });
});

describe('what is typed', () => {
  test('is put over what is known; null takes it away', () => {
    const known = changedInfo(noInfo, { displayName: ' Ada  L. ', email: 'ada@example.org' });
    expect(known).toEqual({
      ...noInfo,
      displayName: 'Ada L.',
      email: 'ada@example.org',
      isEmailVerified: true,
    });
    expect(changedInfo(known, { displayName: null })).toEqual({ ...known, displayName: undefined });
    expect(changedInfo(known, { email: '' })).toMatchObject({
      email: undefined,
      isEmailVerified: false,
    });
  });

  test('does not verify the address that a provider did not', () => {
    const claimed = infoFromClaims({ email: 'ada@example.org' }, 'work');
    expect(changedInfo(claimed, { displayName: 'Ada' })).toMatchObject({
      isEmailVerified: false,
      authenticator: undefined,
    });
  });

  test.each([
    [{ displayName: 'x'.repeat(256) }, 'longer than 255 characters'],
    [{ displayName: 'Ada\u202e' }, 'cannot be seen'],
    [{ email: 'ada' }, 'not an e-mail address'],
    [{ email: `${'x'.repeat(250)}@example.org` }, 'longer than 254'],
    [{ pictureUrl: 'http://example.org/a.png' }, 'https://'],
    [{ pictureUrl: `https://example.org/${'x'.repeat(2_000)}` }, 'longer than 2000'],
  ])('is refused with a reason: %j', (change, reason) => {
    expect(() => changedInfo(noInfo, change)).toThrow(reason);
  });
});

test('a search finds all letters in either case, and no text that runs over', () => {
  const text = searchTextOf({ ...noInfo, displayName: 'ÉLODIE', email: 'E@Example.org' });
  expect(text).toContain('élodie');
  expect(text).toContain('e@example.org');
  expect(text).not.toContain('élodiee@');
});
