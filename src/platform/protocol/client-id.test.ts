import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createClientRegistry } from '../../identity/oauth/clients/client-registry.ts';
import { readServerClientId, type ServerName, serverClientId } from './client-id.ts';

test.each([
  ['alice', '', 'hub-user-alice'],
  ['a-b', '', 'hub-user-a-b'],
  ['alice', 'lab', 'hub-user-alice-lab'],
  ['a', 'b-c', 'hub-user-a-b-c'],
  ['a-b', 'c', 'hub-user-a%2Db-c'],
  ['a-b', 'c-d', 'hub-user-a%2Db-c-d'],
  ['-', 'lab', 'hub-user-%2D-lab'],
  ['a--b', '', 'hub-user-a--b'],
  ['alice@example.org', '', 'hub-user-alice%40example.org'],
  ['alice@example.org', 'lab', 'hub-user-alice%40example.org-lab'],
  ['a%2Db', 'c', 'hub-user-a%252Db-c'],
  ['zoë', '', 'hub-user-zo%C3%AB'],
  ["o'hara (1)", '', 'hub-user-o%27hara%20%281%29'],
])('gives the server %j %j the id %s', (userName, serverName, clientId) => {
  expect(serverClientId(userName, serverName)).toBe(clientId);
  expect(readServerClientId(clientId)).toContainEqual({ userName, serverName });
});

test('reads an id that may mean two servers as the default one first', () => {
  expect(readServerClientId('hub-user-a-b')).toEqual([
    { userName: 'a-b', serverName: '' },
    { userName: 'a', serverName: 'b' },
  ]);
});

const piece = fc.constantFrom('a', 'b', '-', '--', '%', '%2D', '.', ' ', 'é', '💡', "'");
const userName = fc
  .array(piece, { minLength: 1, maxLength: 5 })
  .map((parts) => parts.join('').normalize('NFC'));
const slug = fc
  .array(fc.constantFrom('a', 'b', 'b-a', 'a2'), { minLength: 1, maxLength: 3 })
  .map((parts) => parts.join('-'));
const server = fc.record({ userName, serverName: fc.oneof(fc.constant(''), slug) });

describe('for any names', () => {
  test('leads back to the server', () => {
    fc.assert(
      fc.property(server, (one) => {
        expect(readServerClientId(serverClientId(one.userName, one.serverName))).toContainEqual(
          one,
        );
      }),
    );
  });

  test('uses only characters that cookie names and URLs may hold', () => {
    fc.assert(
      fc.property(server, (one) => {
        expect(serverClientId(one.userName, one.serverName)).toMatch(/^[A-Za-z0-9._~%-]+$/);
      }),
    );
  });

  test('two named servers never have one id', () => {
    const named = fc.record({ userName, serverName: slug });
    fc.assert(
      fc.property(named, named, (one, other) => {
        fc.pre(one.userName !== other.userName || one.serverName !== other.serverName);
        expect(serverClientId(one.userName, one.serverName)).not.toBe(
          serverClientId(other.userName, other.serverName),
        );
      }),
    );
  });

  test('two default servers never have one id', () => {
    fc.assert(
      fc.property(userName, userName, (one, other) => {
        fc.pre(one !== other);
        expect(serverClientId(one, '')).not.toBe(serverClientId(other, ''));
      }),
    );
  });

  test('every id of a live server leads to that server alone, in a registry of any population', async () => {
    // Short names over few letters, so that `a-b` and the server `b` of `a` meet often.
    const shortName = fc
      .array(fc.constantFrom('a', 'b', '-', '%2D'), { minLength: 1, maxLength: 4 })
      .map((parts) => parts.join(''));
    const shortSlug = fc.constantFrom('a', 'b', 'a-b', 'b-a');
    const population = fc.array(
      fc.record({ userName: shortName, serverName: fc.oneof(fc.constant(''), shortSlug) }),
      { maxLength: 12 },
    );
    await fc.assert(
      fc.asyncProperty(population, async (wanted) => {
        const users = new Set(wanted.map((each) => each.userName));
        const isLive = ({ userName: user, serverName }: ServerName) =>
          serverName === '' || !users.has(`${user}-${serverName}`);
        const live = wanted.filter(isLive);
        const clients = createClientRegistry({
          services: () => [],
          servers: {
            isUser: async (name) => users.has(name),
            find: async (user, serverName) =>
              wanted.some((each) => each.userName === user && each.serverName === serverName)
                ? { id: 'id', prefix: `/user/${user}/${serverName}` }
                : undefined,
            allowedScopes: [],
          },
          originOf: () => 'https://hub.example',
        });
        for (const each of live) {
          const client = await clients.find(serverClientId(each.userName, each.serverName));
          expect(client?.identity.server).toEqual(each);
        }
        const ids = live.map((each) => serverClientId(each.userName, each.serverName));
        const names = live.map((each) => JSON.stringify(each));
        expect(new Set(ids).size).toBe(new Set(names).size);
      }),
    );
  });
});

test.each([
  'service-wiki',
  'hub-user-',
  'hub-user-%61lice',
  'hub-user-zo%c3%ab',
  'hub-user-zoe%CC%88',
  'hub-user-%',
  'hub-user-a b',
  'hub-user-a%2Fb c',
])('takes %s for no server', (clientId) => {
  expect(readServerClientId(clientId)).toEqual([]);
});
