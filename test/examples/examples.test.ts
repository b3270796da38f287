import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { Secret } from '../../src/platform/config/secret.ts';
import { createAssertionSigner } from '../../src/traffic/gateway/assertion.ts';
import { FakeBrowser } from '../support/fake-browser.ts';
import { startFakeHub } from '../support/fake-hub.ts';
import { freePort } from '../support/free-port.ts';

async function untilListening(port: number): Promise<void> {
  for (;;) {
    const socket = connect(port, '127.0.0.1');
    const { promise, resolve } = Promise.withResolvers<boolean>();
    socket.once('connect', () => resolve(true));
    socket.once('error', () => resolve(false));
    const isListening = await promise;
    socket.destroy();
    if (isListening) return;
  }
}

/** Runs an example as its README says, with a fake hub, in a directory of its own. */
async function startExample(name: string, variables: Record<string, string> = {}) {
  const hub = await startFakeHub();
  const port = await freePort();
  const origin = `http://127.0.0.1:${port}`;
  hub.publicOrigin = origin;
  hub.clients.set(`service-${name}`, `the-token-of-${name}`);
  const directory = await mkdtemp(join(tmpdir(), 'hub-example-'));
  const program = spawn(
    process.execPath,
    ['-C', 'development', join(import.meta.dirname, '..', '..', 'examples', name, `${name}.ts`)],
    {
      cwd: directory,
      stdio: ['ignore', 'inherit', 'ignore'],
      env: {
        HUB_SERVICE_NAME: name,
        HUB_API_TOKEN: `the-token-of-${name}`,
        HUB_API_URL: hub.apiUrl,
        HUB_BASE_URL: `${hub.origin}/`,
        HUB_SERVICE_URL: origin,
        ...variables,
      },
    },
  );
  await untilListening(port);
  return {
    hub,
    prefix: `${origin}/services/${name}/`,
    browser: new FakeBrowser(),
    async [Symbol.asyncDispose]() {
      const exited = once(program, 'exit');
      program.kill();
      await exited;
      await hub[Symbol.asyncDispose]();
      await rm(directory, { recursive: true });
    },
  };
}

describe('whoami', () => {
  const user = { name: '<b>alice</b>', groups: ['staff'], scopes: ['access:services'] };

  test('tells a browser who is there, escaped, and logs her out', async () => {
    await using example = await startExample('whoami');
    example.hub.loggedIn = user;
    const page = await example.browser.open(example.prefix);
    expect(page.body).toContain('Hello, &#60;b&#62;alice&#60;/b&#62;');
    const logout = await example.browser.request(`${example.prefix}logout`);
    expect(logout.headers.location).toBe(`${example.hub.origin}/hub/logout`);
    expect(example.browser.cookie('service-whoami')).toBeUndefined();
  });

  test('answers a program with JSON', async () => {
    await using example = await startExample('whoami');
    example.hub.users.set('good', user);
    const answer = await fetch(`${example.prefix}api`, {
      headers: { authorization: 'token good' },
    });
    expect(await answer.json()).toMatchObject(user);
    expect((await fetch(`${example.prefix}api`)).status).toBe(401);
  });
});

describe('plain-app', () => {
  async function startWithKeys() {
    const publicUrl = 'https://hub.example.org/';
    const signer = (secret: string) =>
      createAssertionSigner({ secrets: [new Secret(secret)], issuer: publicUrl });
    const signing = signer('a cookie secret of the hub');
    const keys = createServer((_request, response) => {
      void signing.keySet().then((set) => response.end(JSON.stringify(set)));
    }).listen(0, '127.0.0.1');
    await once(keys, 'listening');
    const example = await startExample('plain-app', {
      HUB_BASE_URL: publicUrl,
      HUB_ASSERTION_JWKS_URL: `http://127.0.0.1:${(keys.address() as AddressInfo).port}/`,
    });
    return {
      prefix: example.prefix,
      signing,
      foreign: signer('somebody else'),
      async [Symbol.asyncDispose]() {
        await example[Symbol.asyncDispose]();
        keys.close();
        keys.closeAllConnections();
      },
    };
  }

  test('believes an assertion of the hub for itself, and no other', async () => {
    await using example = await startWithKeys();
    const identity = {
      userName: 'ann é',
      groups: ['a,b'],
      scopes: [],
      audience: 'service-plain-app',
    };
    const ask = async (assertion: string) => {
      const answer = await fetch(example.prefix, {
        headers: { 'x-hub-assertion': assertion, 'x-hub-user': 'ann%20%C3%A9' },
      });
      return { status: answer.status, body: await answer.text() };
    };
    const own = await ask(await example.signing.assertion(identity));
    expect(own.body).toContain('Hello, ann é.');
    const forOther = { ...identity, audience: 'service-other' };
    expect((await ask(await example.signing.assertion(forOther))).status).toBe(403);
    expect((await ask(await example.foreign.assertion(identity))).status).toBe(403);
    expect((await ask('')).status).toBe(403);
  });
});

describe('announcements', () => {
  const reader = { name: 'reader', scopes: ['access:services!service=announcements'] };
  const writer = { name: 'writer', scopes: [...reader.scopes, 'custom:announcements:write'] };

  test('are written by holders of the scope, and read by all users, escaped', async () => {
    await using example = await startExample('announcements');
    example.hub.users.set('of-writer', writer);
    example.hub.users.set('of-reader', reader);
    const post = (token: string) =>
      fetch(`${example.prefix}api`, {
        method: 'POST',
        headers: { authorization: `token ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ text: 'Maintenance <tonight>' }),
      });
    expect((await post('of-reader')).status).toBe(403);
    expect((await post('of-writer')).status).toBe(201);

    example.hub.loggedIn = reader;
    const page = await example.browser.open(example.prefix);
    expect(page.body).toContain('Maintenance &#60;tonight&#62;');
    expect(page.body).not.toContain('<form');
  });

  test('are written in the page, but not by a form of another site', async () => {
    await using example = await startExample('announcements');
    example.hub.loggedIn = writer;
    expect((await example.browser.open(example.prefix)).body).toContain('<form');
    expect(example.hub.authorizeRequests[0]?.get('scope')).toContain('custom:announcements:write');
    const form = (site: string) => ({
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded', 'sec-fetch-site': site },
      body: 'text=Hello',
    });
    expect((await example.browser.request(example.prefix, form('cross-site'))).status).toBe(403);
    expect((await example.browser.request(example.prefix, form('same-origin'))).status).toBe(303);
    expect((await example.browser.open(example.prefix)).body).toContain('Hello');
  });
});
