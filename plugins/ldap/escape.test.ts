import { describe, expect, test } from 'vitest';
import { escapeDnValue, escapeFilterValue } from './escape.ts';

describe('a value of a filter', () => {
  test.for([
    ['ada', 'ada'],
    ['*', '\\2a'],
    ['a)(uid=*', 'a\\29\\28uid=\\2a'],
    ['back\\slash', 'back\\5cslash'],
    ['nul\u0000', 'nul\\00'],
    ['zoë', 'zo\\c3\\ab'],
  ] as const)('%j becomes %j (RFC 4515 §3)', ([value, escaped]) => {
    expect(escapeFilterValue(value)).toBe(escaped);
  });
});

describe('a value of a distinguished name', () => {
  test.for([
    ['ada', 'ada'],
    ['ada,ou=admins', 'ada\\2cou\\3dadmins'],
    ['a+b', 'a\\2bb'],
    [' ada ', '\\20ada\\20'],
    ['a b', 'a b'],
    ['#ada', '\\23ada'],
    ['"<>;\\', '\\22\\3c\\3e\\3b\\5c'],
    ['nul\u0000', 'nul\\00'],
    ['zoë', 'zo\\c3\\ab'],
  ] as const)('%j becomes %j (RFC 4514 §2.4)', ([value, escaped]) => {
    expect(escapeDnValue(value)).toBe(escaped);
  });
});
