import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { expect, test } from 'vitest';
import type { Client } from './client.ts';
import { createClientAuthentication } from './client-authentication.ts';
import { createFailureLimit } from './failure-limit.ts';

const client: Client = {
  clientId: 'service-a',
  kind: 'service',
  name: 'a',
  redirectUri: '/cb',
  allowedScopes: [],
  accessScope: 'access:services!service=a',
  skipsConsent: false,
  identity: { clientId: 'service-a', service: 'a' },
};

function create() {
  return createClientAuthentication({
    clients: { find: async (clientId) => (clientId === client.clientId ? client : undefined) },
    verifyClientSecret: async (_, secret) => secret === 'right',
    failureLimit: createFailureLimit({ limit: 2, now: () => 0 }),
  });
}

function incomingFrom(address: string): IncomingMessage {
  const incoming = new IncomingMessage(new Socket());
  Object.defineProperty(incoming.socket, 'remoteAddress', { value: address });
  return incoming;
}

const request = (client_id: string, client_secret: string, address = '192.0.2.1') => ({
  authorization: undefined,
  form: new URLSearchParams({ client_id, client_secret }),
  incoming: incomingFrom(address),
});
const anonymous = {
  authorization: undefined,
  form: new URLSearchParams(),
  incoming: incomingFrom('192.0.2.1'),
};

test('knows a client by its secret', async () => {
  expect(await create().require(request('service-a', 'right'))).toBe(client);
});

test('refuses a wrong secret and an unknown client alike', async () => {
  const authentication = create();
  const wrong = await authentication.require(request('service-a', 'wrong')).catch((error) => error);
  const unknown = await authentication
    .require(request('service-b', 'right'))
    .catch((error) => error);
  expect(wrong).toMatchObject({ error: 'invalid_client' });
  expect(unknown.message).toBe(wrong.message);
});

test('tells whether there were credentials at all', async () => {
  const authentication = create();
  expect(await authentication.find(anonymous)).toBeUndefined();
  await expect(authentication.require(anonymous)).rejects.toMatchObject({
    error: 'invalid_client',
  });
});

test('stops guesses from one address, even the right one, and lets other addresses in', async () => {
  const authentication = create();
  for (const secret of ['x', 'y']) {
    await authentication.require(request('service-a', secret)).catch(() => {});
  }
  await expect(authentication.require(request('service-a', 'right'))).rejects.toMatchObject({
    retryAfterSeconds: 60,
  });
  expect(await authentication.require(request('service-a', 'right', '192.0.2.2'))).toBe(client);
});
