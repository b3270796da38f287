import fc from 'fast-check';
import { expect, test } from 'vitest';
import { normaliseUserName, validateUserName } from '../../identity/users/user-name.ts';
import { canonicalPath } from '../../platform/http/request-address.ts';
import { createRouteTable } from '../../traffic/proxy/route-table.ts';
import { safeFileName } from './safe-file-name.ts';
import { isServerName, serverPrefix } from './server.ts';

test.each([
  ['ann', '', '/user/ann/'],
  ['ann', 'lab', '/user/ann/lab/'],
  ['ann@example.org', '', '/user/ann@example.org/'],
  ['Ann B.', '', '/user/Ann%20B./'],
  ['100%', '', '/user/100%25/'],
  ['a%2Fb', '', '/user/a%252Fb/'],
  ['zoë', '', '/user/zo%C3%AB/'],
])('the server %j %j is at %s', (userName, serverName, prefix) => {
  expect(serverPrefix('/', userName, serverName)).toBe(prefix);
  expect(serverPrefix('/team/', userName, serverName)).toBe(`/team${prefix}`);
});

test.each([
  ['lab', true],
  ['a1-b2', true],
  ['a'.repeat(30), true],
  ['', false],
  ['a'.repeat(31), false],
  ['1a', false],
  ['a--b', false],
  ['a-', false],
  ['Lab', false],
  ['a/b', false],
  ['oauth_callback', false],
])('whether %j can name a server: %s', (name, isPossible) => {
  expect(isServerName(name)).toBe(isPossible);
});

const userName = fc
  .string({ unit: 'grapheme', minLength: 1, maxLength: 255 })
  .map((name) => normaliseUserName(name))
  .filter((name) => {
    try {
      return validateUserName(name) === name;
    } catch {
      return false;
    }
  });

test('every user has one folder, also on a file system that does not know case', () => {
  fc.assert(
    fc.property(userName, userName, (one, other) => {
      const folder = safeFileName(one);
      expect(folder).toMatch(/^[^/\0]{1,255}$/);
      expect(folder).not.toMatch(/^\.{1,2}$/);
      if (one !== other) {
        expect(folder.toLowerCase()).not.toBe(safeFileName(other).toLowerCase());
      }
    }),
  );
});

test.each([
  ['Ann', 'ann'],
  ['..', '%2e%2e'],
  ['a b', 'a%20b'],
  ['é', '%c3%a9'],
])('%j and %j have different folders', (one, other) => {
  expect(safeFileName(one).toLowerCase()).not.toBe(safeFileName(other).toLowerCase());
});

test('no user can choose a name whose folder is that of a long one', () => {
  const victim = 'v'.repeat(255);
  const folder = safeFileName(victim);
  expect(folder.length).toBeLessThan(255);
  expect(safeFileName(folder)).not.toBe(folder);
});

test('every user has an address that leads to that user alone', () => {
  fc.assert(
    fc.property(userName, userName, (one, other) => {
      fc.pre(one !== other);
      const table = createRouteTable();
      for (const name of [one, other]) {
        const owner = { kind: 'server', userName: name, serverName: '' } as const;
        const target = 'http://127.0.0.1:9';
        table.add({
          prefix: serverPrefix('/', name, ''),
          target,
          access: 'server',
          owner,
          serverId: name,
        });
      }
      const path = canonicalPath(`${serverPrefix('/', one, '')}x`);
      const match = path && table.match(path);
      expect(match).toMatchObject({ route: { owner: { userName: one } } });
    }),
  );
});
