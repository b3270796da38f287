import { once } from 'node:events';
import { type IncomingMessage, type OutgoingHttpHeaders, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import WebSocket from 'ws';
import { freePort } from '../support/free-port.ts';
import { managedService, untilState } from '../support/services.ts';
import { createTestHub, type TestHub, until } from '../support/test-hub.ts';

let hub: TestHub;
let appUrl: string;

beforeAll(async () => {
  hub = await createTestHub({
    Hub: {
      services: [
        await managedService('app', 'fixtures/apps/gateway-app.cjs', { access: 'public' }),
        await managedService('guarded', 'fixtures/apps/gateway-app.cjs', { access: 'gateway' }),
        { name: 'away', url: `http://127.0.0.1:${await freePort()}`, access: 'public' },
      ],
    },
    Proxy: { extra_routes: { '/lost/': `http://127.0.0.1:${await freePort()}` } },
  });
  appUrl = `${hub.url}services/app/`;
  await untilState(hub, 'app', 'ready');
  await untilState(hub, 'guarded', 'ready');
});

afterAll(async () => hub[Symbol.asyncDispose]());

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

async function ask(url: string, headers: OutgoingHttpHeaders = {}, path?: string) {
  const outgoing = request(url, { headers, ...(path !== undefined && { path }) }).end();
  const [answer] = (await once(outgoing, 'response')) as [IncomingMessage];
  return { status: answer.statusCode, headers: answer.headers, body: await text(answer) };
}

/** What the app was told as the id of a request. */
async function seenByApp(headers: OutgoingHttpHeaders = {}): Promise<Record<string, string>> {
  const { body } = await ask(appUrl, headers);
  return (JSON.parse(body) as { headers: Record<string, string> }).headers;
}

function linesAbout(requestId: unknown): Record<string, unknown>[] {
  return hub.logLines.filter((line) => line['requestId'] === requestId);
}

const asBrowser = { accept: 'text/html' };

describe('the id of a request', () => {
  test('is a new one for each request, told to the upstream', async () => {
    const ids = [await seenByApp(), await seenByApp()].map((headers) => headers['x-request-id']);
    for (const id of ids) expect(id).toMatch(uuid);
    expect(new Set(ids).size).toBe(2);
  });

  test("is the client's own where that is safe, and its trace goes on", async () => {
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const headers = await seenByApp({ 'X-Request-Id': 'build-42/step:7', traceparent });
    expect(headers).toMatchObject({ 'x-request-id': 'build-42/step:7', traceparent });
  });

  test.each([
    ['holds a space', 'one two'],
    ['would end a quotation', '"><script>'],
    ['is long', 'x'.repeat(129)],
    ['is empty', ''],
    ['is sent twice', ['one', 'two']],
  ])('is replaced where the one that was sent %s', async (_what, sent) => {
    expect((await seenByApp({ 'X-Request-Id': sent }))['x-request-id']).toMatch(uuid);
  });

  test('is told to the upstream of a WebSocket', async () => {
    const socket = new WebSocket(`${appUrl.replace('http', 'ws')}socket`, {
      headers: { 'X-Request-Id': 'socket-1' },
    });
    const [message] = await once(socket, 'message');
    socket.close();
    expect(JSON.parse(String(message)).headers).toMatchObject({ 'x-request-id': 'socket-1' });
  });
});

describe('the page of a failure shows the id that the answer and the log have', () => {
  test.each<[what: string, path: string]>([
    ['an upstream that is not there', '/lost/page'],
    ['a page of the hub that is not there', '/hub/no-such-page'],
    ['an address that can be read in two ways', '/services/app/..%2f'],
  ])('%s', async (_what, path) => {
    const { headers, body } = await ask(hub.url, asBrowser, path);
    const id = headers['x-request-id'];
    expect(id).toMatch(uuid);
    expect(body).toContain(`<code>${id}</code>`);
  });

  test('an upstream that failed is found in the log by it', async () => {
    const { status, headers } = await ask(`${hub.url}lost/page`, asBrowser);
    expect(status).toBe(503);
    await until(() => linesAbout(headers['x-request-id']).length > 0, 'the failure is logged');
    expect(linesAbout(headers['x-request-id'])).toContainEqual(
      expect.objectContaining({ msg: 'upstream failed', route: '/lost/' }),
    );
  });

  test('a service that is not ready, a program that is told in JSON, and the internal address', async () => {
    const answers = [
      await ask(`${hub.url}services/away/`, asBrowser),
      await ask(`${hub.url}lost/page`),
      await ask(`${hub.url}hub/api/no-such-thing`),
      await ask(new URL('/elsewhere', hub.apiUrl).href),
    ];
    expect(answers.map(({ status }) => status)).toEqual([503, 503, 404, 404]);
    for (const { headers } of answers) expect(headers['x-request-id']).toMatch(uuid);
  });

  test('a refused WebSocket', async () => {
    const refused = [];
    for (const path of ['services/guarded/socket', 'lost/socket', 'nowhere']) {
      const socket = new WebSocket(hub.url.replace('http', 'ws') + path);
      const [, answer] = (await once(socket, 'unexpected-response')) as [unknown, IncomingMessage];
      refused.push(answer.headers['x-request-id']);
      answer.resume();
    }
    for (const id of refused) expect(id).toMatch(uuid);
  });
});

test('one page of failures is as well guarded as another', async () => {
  const ofHub = await ask(hub.url, asBrowser, '/hub/no-such-page');
  const ofGateway = await ask(hub.url, asBrowser, '/lost/page');
  for (const name of [
    'content-security-policy',
    'x-content-type-options',
    'referrer-policy',
    'cross-origin-opener-policy',
    'x-frame-options',
    'cache-control',
  ]) {
    expect(ofGateway.headers[name], name).toBe(ofHub.headers[name]);
    expect(ofGateway.headers[name], name).toBeDefined();
  }
});
