import { expect, test } from 'vitest';
import { Secret } from '../platform/config/secret.ts';
import { createSealer } from '../platform/crypto/sealer.ts';
import { createTokenCookie } from './token-cookie.ts';

const sealer = createSealer([new Secret('a key for this test')], 'test');
const attributes = { path: '/services/x/', secure: false };

function pairOf(setCookie: string): string {
  return setCookie.split(';', 1)[0] ?? '';
}

test('a cookie is decrypted once, however often it comes', () => {
  let opened = 0;
  const counting = {
    ...sealer,
    open: (sealed: string, context: string) => {
      opened += 1;
      return sealer.open(sealed, context);
    },
  };
  const cookie = createTokenCookie(counting, 'service-x');
  const header = `theme=dark; ${pairOf(cookie.write('the-token', attributes))}`;
  for (let count = 0; count < 5; count += 1) expect(cookie.read(header)).toBe('the-token');
  expect(opened).toBe(1);
});

test('a header full of copies is not decrypted copy by copy', () => {
  const cookie = createTokenCookie(sealer, 'service-x');
  const own = pairOf(cookie.write('the-token', attributes));
  expect(cookie.read(Array.from({ length: 50 }, () => own).join('; '))).toBeUndefined();
});

test('no cookie, another cookie and an empty one hold no token', () => {
  const cookie = createTokenCookie(sealer, 'service-x');
  for (const header of [undefined, '', 'service-xy=1', 'service-x=', 'service-x']) {
    expect(cookie.read(header)).toBeUndefined();
  }
});
