import { setImmediate as nextTurn } from 'node:timers/promises';
import { pino } from 'pino';
import { expect, test, vi } from 'vitest';
import type { Client } from '../clients/client.ts';
import { createRefreshGrant } from './refresh-grant.ts';

test('refreshes of one grant take one connection to the database, however many there are', async () => {
  let running = 0;
  const most = vi.fn<(running: number) => void>();
  const refresh = createRefreshGrant({
    refreshTokens: {
      find: (token) =>
        Promise.resolve({
          id: token,
          userId: 'u',
          clientId: 'c',
          sessionId: undefined,
          scopes: [],
        }),
      async refresh() {
        running += 1;
        most(running);
        await nextTurn();
        running -= 1;
        return { outcome: 'unknown' };
      },
    },
    users: { findById: () => Promise.resolve({ name: 'ada' } as never) },
    authorizer: {
      scopesOfOwner: () => Promise.resolve([] as never),
      membership: () => Promise.resolve({} as never),
    },
    log: pino({ enabled: false }),
  });
  const client = { clientId: 'c', name: 'wiki' } as Client;
  const asked = ['one', 'one', 'other', 'one'].map((token) =>
    refresh(client, new URLSearchParams({ refresh_token: token })),
  );
  const answers = await Promise.allSettled(asked);
  expect(answers.map(({ status }) => status)).toEqual(Array(4).fill('rejected'));
  expect(Math.max(...most.mock.calls.flat())).toBe(2);
});
