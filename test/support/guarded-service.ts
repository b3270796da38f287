import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'vitest';
import type { HubOAuthOptions } from '../../src/client/client-options.ts';
import { HubOAuth } from '../../src/client/hub-oauth.ts';
import { nodeListener } from '../../src/client/node-adapter.ts';
import { FakeBrowser } from './fake-browser.ts';
import { startFakeHub } from './fake-hub.ts';

export const alice = { name: 'alice', groups: ['staff'], scopes: ['access:services!service=x'] };
export const bob = { name: 'bob', groups: [], scopes: ['access:services!service=x'] };

/** A fake hub and a service `x` whose pages say who is there. */
export async function startGuardedService(options: HubOAuthOptions = {}) {
  const hub = await startFakeHub();
  hub.loggedIn = alice;
  hub.clients.set('service-x', 'the-secret-of-x');
  const create = (further: HubOAuthOptions = {}) =>
    new HubOAuth({
      environment: {},
      service_name: 'x',
      api_token: 'the-secret-of-x',
      api_url: hub.apiUrl,
      hub_base_url: `${hub.origin}/`,
      ...options,
      ...further,
    });
  let hubAuth = create();
  const failures: unknown[] = [];
  const server = createServer((request, response) => {
    const listener = nodeListener(
      hubAuth,
      (_request, reply, access) => {
        reply.end(`${access.user.name} at ${access.url}`);
      },
      { onError: (thrown) => failures.push(thrown) },
    );
    listener(request, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  hub.publicOrigin = origin;
  return {
    hub,
    failures,
    origin,
    prefix: `${origin}/services/x/`,
    browser: new FakeBrowser(),
    get hubAuth() {
      return hubAuth;
    },
    /** As after a restart of the service: nothing in memory is left. */
    restart(further: HubOAuthOptions = {}) {
      hubAuth = create(further);
    },
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
      await hub[Symbol.asyncDispose]();
    },
  };
}

export type GuardedService = Awaited<ReturnType<typeof startGuardedService>>;

/** Begins a login and stops before the callback; returns the callback's URL. */
export async function beginLogin(
  parts: GuardedService,
  browser: FakeBrowser,
  url = parts.prefix,
): Promise<URL> {
  const redirect = await browser.request(url);
  const authorize = await fetch(redirect.headers.location ?? '', { redirect: 'manual' });
  return new URL(authorize.headers.get('location') ?? '');
}

/** The cookie of the one login that is under way in a browser. */
export function stateCookieOf(browser: FakeBrowser): {
  readonly name: string;
  readonly value: string;
} {
  const names = browser
    .cookieNames()
    .filter((name) => /^service-x-oauth-state-[\w-]{16}$/.test(name));
  expect(names).toHaveLength(1);
  const [name = ''] = names;
  return { name, value: browser.cookie(name)?.value ?? '' };
}
