import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { longInput, runInLinearTime } from '../../../test/support/linear-time.ts';
import { runs } from '../../../test/support/properties.ts';
import { canonicalPath, decodePath } from './request-address.ts';

describe('canonicalPath', () => {
  test.for([
    '/',
    '/services/whoami/',
    '/services/whoami?x=1?y=/../z',
    '/user/a@b/lab/tree/x.ipynb',
    '/a;b=c/d',
    '/a|b^c{d}/"e"',
  ])('reads %s without looking for a second reading', (target) => {
    const path = canonicalPath(target);
    expect(path).toMatchObject({ target, isPlain: true });
    expect(path?.pathname).toBe(target.split('?')[0]);
  });

  test.for([
    '/.well-known/x',
    '/a/.hidden',
    '/a/...',
    '/a/..b',
    '/a/b..',
    '/a//b',
    '/a/%2f',
    '/user/jos%C3%A9/',
    '/a%20b',
    '/a/%252e%252e/b',
    '/a?%',
    '/a?\u00e9',
    '/a?b\\c',
  ])('accepts %s, which needs a closer look', (target) => {
    expect(canonicalPath(target)).toMatchObject({ target });
  });

  test.for([
    '',
    '*',
    'a',
    '?x',
    'http://hub.test/user/a',
    'hub.test:443',
    '//h/user/a',
    '/%2fh/user/a',
    '/\\h/user/a',
    '/user/a\\..\\b',
    '/user/a%5c..%5cb',
    '/user/a/../b',
    '/user/a/./b',
    '/user/a/..',
    '/user/a/.',
    '/..',
    '/user/a/%2e%2e/b',
    '/user/a/%2E./b',
    '/user/a/.%2e',
    '/user/a%2f..%2fb',
    '/public%2f..%2fadmin',
    '/user/a/..;x/b',
    '/user/a/..%3bx/b',
    '/user/a;x/../b',
    '/user/a#b',
    '/user/a?b#c',
    '/a b',
    '/a\tb',
    '/a\0b',
    '/a%00b',
    '/a%0d%0aX: y',
    '/a%7f',
    '/a%c2%85',
    '/a\u007fb',
    '/a\u00e9',
    '/a\u2028',
    '/a?b\nc',
    '/%',
    '/%4',
    '/%zz',
    '/%E0%A4%A',
    '/%c0%ae%c0%ae/',
    '/%ff',
    '/%ed%a0%80',
  ])('refuses %j', (target) => {
    expect(canonicalPath(target)).toBeUndefined();
  });

  test('never accepts a path that a URL parser would change', () => {
    const piece = fc.constantFrom(
      '/',
      '.',
      '..',
      '%2e',
      '%2F',
      '\\',
      '%5c',
      'a',
      ';',
      '%00',
      '#',
      '?',
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        const target = `/${pieces.join('')}`;
        const path = canonicalPath(target);
        if (path === undefined) return;
        expect(new URL(`http://hub.test${target}`).pathname).toBe(path.pathname);
        expect(decodePath(path.pathname)?.split('/')).not.toContain('..');
      }),
      runs(5_000),
    );
  });

  test('reads a long hostile path in linear time', () => {
    const target = `${'/a'.repeat(longInput / 2)}\\`;
    expect(runInLinearTime(() => canonicalPath(target))).toBeUndefined();
  });
});
