import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { longInput, runInLinearTime } from '../../../test/support/linear-time.ts';
import { runs } from '../../../test/support/properties.ts';
import { routeRules } from '../../platform/config/route-rules-schema.ts';
import { compileRules, findUselessRules } from './route-rules.ts';

const rules = routeRules.parse([
  { paths: ['/public/*', '/health'], methods: ['GET'], allow: 'everyone' },
  { paths: ['/Admin/*'], groups: ['ops'] },
  { paths: ['/closed/*'], allow: 'nobody' },
  { paths: ['/office/*'], client_addresses: ['192.0.2.0/24', '2001:db8::1'], allow: 'everyone' },
  { paths: ['/office/*'], allow: 'nobody' },
]);

function verdict(path: string, method = 'GET', address = '203.0.113.5'): string {
  const found = compileRules(rules).judge({ path, method, address });
  return found === 'ambiguous' ? found : [found.allow, ...(found.groups ?? [])].join(' ');
}

test.each([
  ['/', 'users'],
  ['/public', 'everyone'],
  ['/public/', 'everyone'],
  ['/public/a/b', 'everyone'],
  ['/publicity', 'users'],
  ['/pub%6cic/a', 'everyone'],
  ['/health', 'everyone'],
  ['/health/deep', 'users'],
  ['/Admin/x', 'users ops'],
  ['/closed/x', 'nobody'],
  ['/a%20b;c/d', 'users'],
])('%s is for %s', (path, expected) => {
  expect(verdict(path)).toBe(expected);
});

test.each([
  ['another case', '/admin/x'],
  ['another case of a public part', '/PUBLIC/x'],
  ['an encoded slash', '/x%2f..%2fclosed'],
  ['an encoded slash within a rule', '/closed%2fx'],
  ['twice encoded', '/%2563losed/x'],
  ['twice encoded dots', '/public/%252e%252e/closed/x'],
  ['twice encoded slashes', '/public%252f..%252fclosed'],
  ['doubled slashes', '//closed/x'],
  ['a doubled slash within a rule', '/public//x/../../closed'],
  ['a parameter', '/closed;a=b/x'],
  ['dots at the end', '/closed./x'],
  ['a space at the end', '/closed%20/x'],
  ['wide letters', '/%EF%BD%83losed/x'],
  ['a backslash', '/public/%255c..%255cclosed'],
])('%s is refused rather than read one way', (_, path) => {
  expect(verdict(path)).toBe('ambiguous');
});

test.each([
  ['dots', '.'],
  ['spaces', '%20'],
  ['slashes', '/'],
  ['parameters', ';'],
  ['encoded slashes', '%2f'],
])('a long path of %s, takes linear time', (_, part) => {
  const path = `/closed${part.repeat(longInput / part.length)}x`;
  runInLinearTime(() => verdict(path));
});

test('a rule for GET is one for HEAD, and for nothing else', () => {
  expect(verdict('/public/x', 'HEAD')).toBe('everyone');
  expect(verdict('/public/x', 'POST')).toBe('users');
  expect(verdict('/public/x', 'get')).toBe('users');
});

test('addresses count as the network writes them', () => {
  expect(verdict('/office/x', 'GET', '192.0.2.77')).toBe('everyone');
  expect(verdict('/office/x', 'GET', '2001:db8:0:0::1')).toBe('everyone');
  expect(verdict('/office/x', 'GET', '192.0.3.1')).toBe('nobody');
  expect(verdict('/office/x', 'GET', 'unknown')).toBe('nobody');
});

describe('rules that cannot match', () => {
  test.each([
    ['the same again', [{ paths: ['/a'] }, { paths: ['/a'], allow: 'nobody' }]],
    ['after all paths', [{ allow: 'everyone' }, { paths: ['/a'] }]],
    ['below a folder', [{ paths: ['/a/*'] }, { paths: ['/a/b', '/a/c/*'] }]],
    ['in another case', [{ paths: ['/a/*'] }, { paths: ['/A/b'] }]],
    ['of fewer methods', [{ methods: ['GET', 'POST'] }, { methods: ['GET'], paths: ['/x'] }]],
    [
      'of a narrower range',
      [{ client_addresses: ['10.0.0.0/8'] }, { client_addresses: ['10.1.0.0/16', '10.2.3.4'] }],
    ],
  ])('%s', (_, given) => {
    expect(findUselessRules(routeRules.parse(given))).toEqual([{ index: 1, earlier: 0 }]);
  });

  test.each([
    ['a wider path', [{ paths: ['/a/b'] }, { paths: ['/a/*'] }]],
    ['all paths', [{ paths: ['/a/*'] }, {}]],
    [
      'a wider range',
      [{ client_addresses: ['10.1.0.0/16'] }, { client_addresses: ['10.0.0.0/8'] }],
    ],
    ['other methods', [{ methods: ['GET'] }, { methods: ['POST'] }]],
    ['all methods', [{ methods: ['GET'] }, { paths: ['/a'] }]],
  ])('but not %s', (_, given) => {
    expect(findUselessRules(routeRules.parse(given))).toEqual([]);
  });
});

test.each(['/a/../b', '/a?b', '/a%2fb', 'a', '/a;b', '/a*', '/a//b', '/*/a', '/./a'])(
  'no path of a rule: %s',
  (path) => {
    expect(routeRules.safeParse([{ paths: [path] }]).success).toBe(false);
  },
);

describe('for any rules', () => {
  const segment = fc.constantFrom('a', 'b', 'Admin', 'x.y', 'jos\u00e9', 'c d', 'a..b');
  const path = fc.array(segment, { maxLength: 4 }).map((parts) => `/${parts.join('/')}`);
  const pattern = fc
    .tuple(path, fc.boolean())
    .map(([text, isTree]) => (isTree ? `${text.replace(/\/$/, '')}/*` : text))
    .filter((text) => routeRules.safeParse([{ paths: [text] }]).success);
  const ranges = fc.constantFrom('192.0.2.0/24', '192.0.2.7', '::/0');
  const rule = fc.record(
    {
      paths: fc.array(pattern, { minLength: 1, maxLength: 3 }),
      methods: fc.uniqueArray(fc.constantFrom('GET', 'HEAD', 'POST'), { minLength: 1 }),
      client_addresses: fc.array(ranges, { minLength: 1, maxLength: 3 }),
      allow: fc.constantFrom('everyone', 'users', 'nobody'),
    },
    { requiredKeys: ['allow'] },
  );
  const ruleSets = fc.array(rule, { maxLength: 5 }).map((given) => routeRules.parse(given));
  const asked = fc.record({
    path,
    method: fc.constantFrom('GET', 'HEAD', 'POST'),
    address: fc.constantFrom('192.0.2.7', '192.0.2.8', '203.0.113.5', '2001:db8::1'),
  });

  /** Ways to write a path that some application takes for the same. */
  const spelling = fc.constantFrom<(text: string) => string>(
    (text) => text.toUpperCase(),
    (text) => text.replaceAll('/', '//'),
    (text) => `${text}/`,
    (text) => text.replace(/(?<=.)\//, '%2F'),
    (text) => text.replace('a', '%61'),
    (text) => text.replace('a', '%2561'),
    (text) => text.replace(/(?<=\w)(?=\/|$)/, ';v=1'),
    (text) => text.replace(/(?<=\w)(?=\/|$)/, '.'),
    (text) => text.replace(/(?<=\w)(?=\/|$)/, '%20'),
    (text) => `/z/..${text}`,
    (text) => `/z%2f..${text}`,
    (text) => text.replace('a', '%EF%BD%81'),
  );

  test('no other spelling of a path gets around them', () => {
    fc.assert(
      fc.property(ruleSets, asked, spelling, spelling, (given, request, first, second) => {
        const { judge } = compileRules(given);
        const encoded = encodeURI(request.path);
        const plain = judge({ ...request, path: encoded });
        const respelt = judge({ ...request, path: second(first(encoded)) });
        if (plain !== 'ambiguous' && respelt !== 'ambiguous') expect(respelt).toEqual(plain);
      }),
      runs(1_000),
    );
  });

  test('those that cannot match change no verdict', () => {
    fc.assert(
      fc.property(ruleSets, asked, (given, request) => {
        const useless = new Set(findUselessRules(given).map(({ index }) => index));
        const kept = given.filter((_, index) => !useless.has(index));
        expect(compileRules(kept).judge(request)).toEqual(compileRules(given).judge(request));
      }),
      runs(500),
    );
  });
});
