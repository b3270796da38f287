import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import WebSocket from 'ws';
import type { FakeBrowser } from '../support/fake-browser.ts';
import { managedService, untilState } from '../support/services.ts';
import { createTestHub, type TestHub } from '../support/test-hub.ts';

/** Short enough to be waited for, long enough to open a stream with. */
const tokenLifetimeSeconds = 4;

let hub: TestHub;

beforeAll(async () => {
  hub = await createTestHub({
    Hub: {
      load_roles: [
        { name: 'user', scopes: ['self'] },
        {
          name: 'opens-services',
          scopes: ['access:services'],
          users: ['alice', 'bob', 'carol', 'dave'],
        },
      ],
      services: [
        await managedService('guarded', 'fixtures/apps/gateway-app.cjs', {
          access: 'gateway',
          oauth_no_confirm: true,
        }),
        await managedService('own', 'fixtures/apps/gateway-app.cjs'),
      ],
    },
  });
  await untilState(hub, 'guarded', 'ready');
  await untilState(hub, 'own', 'ready');
});
afterAll(async () => hub[Symbol.asyncDispose]());

/** A WebSocket and an event stream, and when both are closed. */
async function openLive(service: string, headers: Record<string, string>) {
  const url = `${hub.url}services/${service}/`;
  const socket = new WebSocket(`${url.replace('http', 'ws')}socket`, {
    headers,
    origin: new URL(url).origin,
  });
  const socketClosed = once(socket, 'close').then(([code]) => code as number);
  await once(socket, 'open');
  const outgoing = request(`${url}events`, { headers: { accept: '*/*', ...headers } }).end();
  const [stream] = (await once(outgoing, 'response')) as [IncomingMessage];
  expect(stream.statusCode).toBe(200);
  const streamClosed = new Promise<void>((resolve) => stream.once('close', resolve));
  stream.on('error', () => undefined).resume();
  let isClosed = false;
  const closed = Promise.all([socketClosed, streamClosed]).then(([code]) => {
    isClosed = true;
    return code;
  });
  return {
    closed,
    isOpen: () => !isClosed,
    end() {
      socket.terminate();
      stream.destroy();
    },
  };
}

async function tokenOf(
  userName: string,
  fields: object = {},
): Promise<{ id: string; token: string }> {
  const answer = await hub.api(`/users/${userName}/tokens`, 'admin-service-token', {
    method: 'POST',
    body: JSON.stringify({ note: 'for a test', ...fields }),
  });
  expect(answer.status).toBe(201);
  return (await answer.json()) as { id: string; token: string };
}

describe('row 42: event streams and WebSockets', () => {
  test('of a logout are closed on services that check visitors themselves, those of others stay', async () => {
    const [leaving, staying] = [await hub.logIn('alice'), await hub.logIn('bob')];
    const cookieOf = (browser: FakeBrowser) => ({
      cookie: browser.cookieHeader(`${hub.url}services/own/`),
    });
    const closing = await openLive('own', cookieOf(leaving));
    const other = await openLive('own', cookieOf(staying));
    await leaving.request(`${hub.url}hub/logout`);
    expect(await closing.closed).toBe(1008);
    expect(other.isOpen()).toBe(true);
    other.end();
  });

  test('of a revoked token are closed on guarded services, those of others stay', async () => {
    await Promise.all([hub.logIn('alice'), hub.logIn('bob')]);
    const [revoked, kept] = [await tokenOf('alice'), await tokenOf('bob')];
    const closing = await openLive('guarded', { authorization: `token ${revoked.token}` });
    const other = await openLive('guarded', { authorization: `token ${kept.token}` });
    const answer = await hub.api(`/users/alice/tokens/${revoked.id}`, 'admin-service-token', {
      method: 'DELETE',
    });
    expect(answer.ok).toBe(true);
    await closing.closed;
    expect(other.isOpen()).toBe(true);
    other.end();
  });

  test('of an expired token are closed on guarded services', async () => {
    await hub.logIn('carol');
    const { token } = await tokenOf('carol', { expires_in: tokenLifetimeSeconds });
    const closing = await openLive('guarded', { authorization: `token ${token}` });
    expect(await closing.closed).toBe(1008);
  });

  test('of a deleted user are closed', async () => {
    await hub.logIn('dave');
    const { token } = await tokenOf('dave');
    const closing = await openLive('guarded', { authorization: `token ${token}` });
    expect((await hub.api('/users/dave', 'admin-service-token', { method: 'DELETE' })).ok).toBe(
      true,
    );
    await closing.closed;
  });
});
