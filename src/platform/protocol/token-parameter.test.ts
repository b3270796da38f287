import { expect, test } from 'vitest';
import { hasTokenParameter, tokenParameter, withoutTokenParameter } from './token-parameter.ts';

test.for([
  ['/x', '/x'],
  ['/x?', '/x?'],
  ['/x?token=s', '/x'],
  ['/x?token=s&a=1', '/x?a=1'],
  ['/x?a=%20&token=s&b=token', '/x?a=%20&b=token'],
  ['/x?%74oken=s&token&tokens=1', '/x?tokens=1'],
  ['/x?%zz=1&token=2', '/x?%zz=1'],
  ['/token=1?a', '/token=1?a'],
] as const)('%s becomes %s', ([url, expected]) => {
  expect(withoutTokenParameter(url)).toBe(expected);
});

test.for([
  ['/x', undefined, false],
  ['/x?', undefined, false],
  ['/x?token', undefined, true],
  ['/x?token=&token=second', undefined, true],
  ['/x?tokens=1&atoken=2&token%zz=3', undefined, false],
  ['/x?a=token&token=s%2B1+2&token=other', 's+1 2', true],
  ['/x?%74oken=s', 's', true],
  ['/token=1?a', undefined, false],
] as const)('%s holds the token %s', ([url, token, isThere]) => {
  expect(tokenParameter(url)).toBe(token);
  expect(hasTokenParameter(url)).toBe(isThere);
});
