import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '../../../test/support/properties.ts';
import { cookieNames, cookieValues, serializeCookie } from './cookies.ts';

test('every value of a cookie is found, quoted or not, and none of a longer name', () => {
  expect(cookieValues('a=1; ab=2; a="3";a=4', 'a')).toEqual(['1', '3', '4']);
  expect(cookieValues(undefined, 'a')).toEqual([]);
});

test('a cookie is written with its flags, and removed with a date in the past', () => {
  expect(serializeCookie('a', 'b', { path: '/x/', secure: true })).toBe(
    'a=b; Path=/x/; HttpOnly; Secure; SameSite=Lax',
  );
  expect(serializeCookie('a', '', { path: '/', secure: false, maxAgeSeconds: 0 })).toContain(
    'Max-Age=0; Expires=Thu, 01 Jan 1970',
  );
  expect(() => serializeCookie('a', 'b;c', { path: '/', secure: false })).toThrow(TypeError);
});

describe('for any cookies', () => {
  const name = fc.constantFrom('a', 'A', 'ab', 'hub-login', 'hub-', '__Host-a', 'a$');
  const text = fc.oneof(
    fc.string(),
    fc.stringMatching(/^[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]*$/),
  );
  const write = (key: string, value: string) => {
    try {
      return serializeCookie(key, value, { path: '/', secure: true });
    } catch (error) {
      expect(error).toBeInstanceOf(TypeError);
      return undefined;
    }
  };

  test('those that can be written are read back in their order', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(name, text)), (cookies) => {
        const kept = cookies.filter(([key, value]) => write(key, value) !== undefined);
        const header = kept.map(([key, value]) => write(key, value)?.split(';')[0]).join('; ');
        for (const [key] of kept) {
          const values = kept.filter(([other]) => other === key).map(([, value]) => value);
          expect(cookieValues(header, key)).toEqual(values);
        }
        const isHub = (key: string) => key.startsWith('hub-');
        const names = new Set(kept.map(([key]) => key).filter(isHub));
        expect(cookieNames(header, 'hub-')).toEqual([...names]);
      }),
      runs(300),
    );
  });

  test('no header breaks their reader, and no value holds the end of another', () => {
    const piece = fc.oneof(name, fc.string(), fc.constantFrom(';', '=', '"', ' ', '; a=', ','));
    fc.assert(
      fc.property(fc.array(piece), name, (pieces, key) => {
        const header = pieces.join('');
        const values = cookieValues(header, key);
        for (const value of values) expect(value).not.toContain(';');
        if (values.length > 0) expect(cookieNames(header, key)).toContain(key);
      }),
      runs(300),
    );
  });
});
