import { expect, test } from 'vitest';
import { withoutTokenParameter } from './token-parameter.ts';

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
