import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseServerClientId, serverClientId } from './server-client-id.ts';

test.each([
  ['alice', '', 'hub-user-alice'],
  ['a-b', '', 'hub-user-a-b'],
  ['alice', 'lab', 'hub-user-alice--lab'],
  ['a', 'b-c', 'hub-user-a--b-c'],
  ['alice@example.org', '', 'hub-user-alice%40example.org'],
  ['zoë', '', 'hub-user-zo%C3%AB'],
  ['a--b', '', 'hub-user-a-%2Db'],
  ['a-', 'b', 'hub-user-a%2D--b'],
  ['a', '-b', 'hub-user-a--%2Db'],
  ["o'hara (1)", '', 'hub-user-o%27hara%20%281%29'],
])('gives the server %j %j the id %s', (userName, serverName, clientId) => {
  expect(serverClientId(userName, serverName)).toBe(clientId);
  expect(parseServerClientId(clientId)).toEqual({ userName, serverName });
});

describe('for any names', () => {
  const piece = fc.constantFrom('a', 'b', '-', '--', '%', '%2D', '.', ' ', 'é', '💡', "'");
  const name = fc
    .array(piece, { minLength: 1, maxLength: 6 })
    .map((parts) => parts.join('').normalize('NFC'));
  const server = fc.record({ userName: name, serverName: fc.oneof(fc.constant(''), name) });

  test('leads back to the server', () => {
    fc.assert(
      fc.property(server, ({ userName, serverName }) => {
        expect(parseServerClientId(serverClientId(userName, serverName))).toEqual({
          userName,
          serverName,
        });
      }),
    );
  });

  test('gives two servers two ids', () => {
    fc.assert(
      fc.property(server, server, (one, other) => {
        fc.pre(one.userName !== other.userName || one.serverName !== other.serverName);
        expect(serverClientId(one.userName, one.serverName)).not.toBe(
          serverClientId(other.userName, other.serverName),
        );
      }),
    );
  });

  test('uses only characters that cookie names and URLs may hold', () => {
    fc.assert(
      fc.property(server, ({ userName, serverName }) => {
        expect(serverClientId(userName, serverName)).toMatch(/^[A-Za-z0-9._~%-]+$/);
      }),
    );
  });
});

test.each([
  'service-wiki',
  'hub-user-',
  'hub-user---lab',
  'hub-user-a--b--c',
  'hub-user-alice--',
  'hub-user-%61lice',
  'hub-user-zo%c3%ab',
  'hub-user-zoe%CC%88',
  'hub-user-%',
  'hub-user-a b',
  'hub-user-a-',
])('takes %s for no server', (clientId) => {
  expect(parseServerClientId(clientId)).toBeUndefined();
});
