import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import WebSocket from 'ws';
import { createHopProof } from '../../src/cluster/instances/hop-proof.ts';
import { Secret } from '../../src/platform/config/secret.ts';
import { freePort } from '../support/free-port.ts';
import { managedService, untilState } from '../support/services.ts';
import { createTestHub, type TestHub, until } from '../support/test-hub.ts';

const key = new Secret('c0ffee42d15ea5e5a1ad0ddba11f00d5c0ffee42d15ea5e5a1ad0ddba11f00d5');
const proof = createHopProof([key]);
const client = {
  address: '203.0.113.9',
  protocol: 'https',
  host: 'hub.example.org',
  isTrustedProxy: false,
} as const;
const path = '/services/app/some/page?a=1';
let hub: TestHub;
let id: string;
let internal: string;

beforeAll(async () => {
  const service = { access: 'public' };
  hub = await createTestHub({
    Hub: {
      cookie_secret: key.reveal(),
      services: [await managedService('app', 'fixtures/apps/gateway-app.cjs', service)],
    },
    Proxy: { access_log: true },
  });
  await untilState(hub, 'app', 'ready');
  internal = new URL(hub.apiUrl).origin;
  const question = 'q'.repeat(32);
  const asked = await fetch(`${internal}/hub/instances/challenge?question=${question}`);
  ({ id } = (await asked.json()) as { id: string });
});
afterAll(() => hub[Symbol.asyncDispose]());

const hopTo = (target: string, method = 'GET', to = id) =>
  proof.make({ to, method, target }, client);

async function ask(url: string, headers: Record<string, string | string[]>, method = 'GET') {
  const sent = request(url, { method, headers });
  sent.end();
  const [answer] = await once(sent, 'response');
  return { status: answer.statusCode as number, body: await text(answer) };
}

describe('a request that another instance passes on', () => {
  test('is answered, guarded and logged here, once, as that of its client', async () => {
    const before = hub.logLines.length;
    const { status, body } = await ask(internal + path, { 'X-Hub-Hop': hopTo(path) });
    expect(status).toBe(200);
    const { url, headers } = JSON.parse(body) as { url: string; headers: Record<string, string> };
    expect(url).toBe(path);
    expect(headers).toMatchObject({
      'x-forwarded-for': client.address,
      'x-forwarded-proto': client.protocol,
      'x-forwarded-host': client.host,
    });
    expect(headers).not.toHaveProperty('x-hub-hop');
    const lines = () =>
      hub.logLines.slice(before).filter((line) => line['path'] === '/services/app/some/page');
    await until(() => lines().length > 0, 'the request is logged');
    expect(lines()).toMatchObject([{ msg: 'forwarded', address: client.address, status: 200 }]);
  });

  test('may be a WebSocket, which is none without the word of an instance', async () => {
    const url = internal.replace('http', 'ws');
    const socket = new WebSocket(`${url}/services/app/socket`, {
      headers: { 'X-Hub-Hop': hopTo('/services/app/socket') },
    });
    const [first] = await once(socket, 'message');
    const { headers } = JSON.parse(String(first)) as { headers: Record<string, string> };
    expect(headers['x-forwarded-for']).toBe(client.address);
    expect(headers).not.toHaveProperty('x-hub-hop');
    socket.close();

    for (const sent of [{}, { 'X-Hub-Hop': 'e30.forged' }]) {
      const refused = new WebSocket(`${url}/services/app/socket`, { headers: sent });
      refused.on('error', () => undefined);
      const [, answer] = await once(refused, 'unexpected-response');
      expect([403, 404]).toContain(answer.statusCode);
      answer.destroy();
    }
  });

  test('is refused at the internal address when no instance has made its header', async () => {
    const genuine = hopTo(path);
    const [payload = '', signature = ''] = genuine.split('.');
    const claims = Buffer.from(JSON.stringify(['10.0.0.1', 'https', 'hub.example.org']));
    const forged: Record<string, string | string[]> = {
      empty: '',
      'no signature': payload,
      'another client': `${claims.toString('base64url')}.${signature}`,
      'another key': createHopProof([new Secret('guessed')]).make(
        { to: id, method: 'GET', target: path },
        client,
      ),
      'for another instance': hopTo(path, 'GET', 'another'),
      'for another path': hopTo('/services/app/'),
      'for another method': hopTo(path, 'POST'),
      'two of them': [genuine, genuine],
      'with more behind it': `${genuine}.x`,
    };
    for (const [what, value] of Object.entries(forged)) {
      const { status, body } = await ask(internal + path, { 'X-Hub-Hop': value });
      expect({ what, status, code: JSON.parse(body).code }).toEqual({
        what,
        status: 403,
        code: 'forbidden',
      });
    }
    expect((await ask(internal + path, {})).status).toBe(404);
  });

  test('does not exist at the public address: the header means nothing and goes nowhere', async () => {
    const url = hub.url.slice(0, -1) + path;
    for (const value of [hopTo(path), 'forged']) {
      const { status, body } = await ask(url, { 'X-Hub-Hop': value, X_Hub_Hop: value });
      expect(status).toBe(200);
      const { headers } = JSON.parse(body) as { headers: Record<string, string> };
      expect(headers['x-forwarded-for']).toBe('127.0.0.1');
      expect(JSON.stringify(headers)).not.toMatch(/hub.hop/i);
    }
  });
});

describe('the address of an instance', () => {
  const warning = (lines: readonly Record<string, unknown>[]) =>
    lines
      .map(({ msg }) => String(msg))
      .find((msg) => msg.startsWith('the address of this instance'));

  test('that leads to no hub, to nothing or to another hub is named in the log', async () => {
    await using other = await createTestHub({
      Hub: { cookie_secret: randomBytes(32).toString('hex') },
    });
    const remote = [
      [hub.url, /no hub with this base path \(status 404\)/],
      [`http://127.0.0.1:${await freePort()}`, /ECONNREFUSED/],
      [new URL(other.apiUrl).origin, /a hub with another cookie_secret answers there/],
    ] as const;
    for (const [url, reason] of remote) {
      await using wrong = await createTestHub({ Hub: { instance_url: url } });
      await until(() => warning(wrong.logLines) !== undefined, `a warning about ${url}`);
      expect(warning(wrong.logLines)).toMatch(reason);
      expect(warning(wrong.logLines)).toContain('Set Hub.instance_url');
    }
    expect(warning(hub.logLines)).toBeUndefined();
  });
});
