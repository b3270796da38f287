import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import { memorySpace } from '../../../../test/support/memory-space.ts';
import type { Client } from './client.ts';
import { createClientAuthentication, readClientCredentials } from './client-authentication.ts';
import { createFailureLimit } from './failure-limit.ts';

const client: Client = {
  clientId: 'service-a',
  kind: 'service',
  name: 'a',
  origin: 'https://hub.example',
  redirectUris: ['/cb'],
  isPublic: false,
  allowedScopes: [],
  accessScope: 'access:services!service=a',
  skipsConsent: false,
  identity: { clientId: 'service-a', service: 'a' },
};

function create() {
  return createClientAuthentication({
    clients: { find: async (clientId) => (clientId === client.clientId ? client : undefined) },
    verifyClientSecret: async (_, secret) => secret === 'right',
    verifyClientAssertion: async () => false,
    failureLimit: createFailureLimit({ counts: memorySpace(), limit: 2, now: () => 0 }),
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

describe('credentials', () => {
  const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`;
  const none = new URLSearchParams();
  const inBody = new URLSearchParams({ client_id: 'service-a', client_secret: 's' });

  test.each([
    ['HTTP Basic', basic('service-a:s'), none],
    ['HTTP Basic in another case', basic('service-a:s').replace('Basic', 'bAsIc'), none],
    [
      'HTTP Basic beside its own client_id',
      basic('service-a:s'),
      new URLSearchParams({ client_id: 'service-a' }),
    ],
    ['the body', undefined, inBody],
    ['the body beside another scheme', 'Bearer x', inBody],
  ])('reads %s', (_, authorization, form) => {
    expect(readClientCredentials(authorization, form)).toEqual({
      clientId: 'service-a',
      clientSecret: 's',
    });
  });

  test('decodes the form-encoding of id and secret', () => {
    expect(readClientCredentials(basic('a%3Ab+c:p%2Bq:r%25'), none)).toEqual({
      clientId: 'a:b c',
      clientSecret: 'p+q:r%',
    });
  });

  test.each([
    ['no credentials', undefined, none],
    ['an id alone', undefined, new URLSearchParams({ client_id: 'service-a' })],
    [
      'an empty secret',
      undefined,
      new URLSearchParams({ client_id: 'service-a', client_secret: '' }),
    ],
    ['a scheme that only begins alike', 'Basically x', none],
  ])('finds none in %s', (_, authorization, form) => {
    expect(readClientCredentials(authorization, form)).toBeUndefined();
  });

  test('refuses two ways of authentication at once', () => {
    expect(() => readClientCredentials(basic('service-a:s'), inBody)).toThrow('two ways at once');
  });

  test('refuses two different ids', () => {
    const form = new URLSearchParams({ client_id: 'service-b' });
    expect(() => readClientCredentials(basic('service-a:s'), form)).toThrow('two different ways');
  });

  test.each(['Basic', 'Basic ', 'Basic !!!', basic('no-colon'), basic('a:%zz')])(
    'refuses the malformed header %s',
    (authorization) => {
      expect(() => readClientCredentials(authorization, none)).toThrow(
        expect.objectContaining({ error: 'invalid_client' }),
      );
    },
  );
});
