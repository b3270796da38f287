import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import WebSocket from 'ws';
import type { FinishedSpan } from '../../src/platform/tracing/trace.ts';
import { FakeBrowser } from '../support/fake-browser.ts';
import { freePort } from '../support/free-port.ts';
import { startGateway, type TestGateway } from '../support/gateway-process.ts';
import {
  adminToken,
  createServerHub,
  createUsers,
  fixtureApp,
  serverPath,
  untilServer,
} from '../support/server-hub.ts';
import { managedService, untilState } from '../support/services.ts';
import { submitLogin, type TestHub, until } from '../support/test-hub.ts';

let hub: TestHub;
let gateway: TestGateway;
/** What the collector got, whole and span by span. */
const tenants = new Set<unknown>();
const bodies: Record<string, unknown>[] = [];
const spans: (FinishedSpan & { readonly process: string })[] = [];
const collector = createServer((req, res) => {
  void text(req).then((sent) => {
    const body = JSON.parse(sent);
    tenants.add(req.headers['x-tenant']);
    bodies.push(body);
    const [{ resource, scopeSpans }] = body.resourceSpans;
    const instance = resource.attributes.at(-1).value.stringValue;
    for (const span of scopeSpans[0].spans) spans.push({ ...span, process: instance });
  });
  res.end('{}');
});

beforeAll(async () => {
  collector.listen(0, '127.0.0.1');
  await once(collector, 'listening');
  const { port } = collector.address() as AddressInfo;
  const config = {
    Hub: {
      public_url: `http://127.0.0.1:${await freePort()}/`,
      tracing: {
        endpoint: `http://127.0.0.1:${port}/v1/traces`,
        sample_ratio: 1,
        headers: { 'x-tenant': { env: 'COLLECTOR_TENANT' } },
      },
      services: [
        await managedService('app', 'fixtures/apps/gateway-app.cjs', { access: 'public' }),
      ],
    },
    Spawner: { cmd: fixtureApp('gateway-app') },
  };
  const environment = { ...process.env, COLLECTOR_TENANT: 'courses' };
  hub = await createServerHub(config, { environment });
  await untilState(hub, 'app', 'ready');
  gateway = await startGateway(hub);
  await createUsers(hub, 'ada');
});

afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await hub[Symbol.asyncDispose]();
  collector.closeAllConnections();
  collector.close();
});

const traceId = '0af7651916cd43dd8448eb211c80319c';
const sentParent = 'b7ad6b7169203331';
const traceparent = `00-${traceId}-${sentParent}-00`;

async function seenByApp(headers: Record<string, string> = {}): Promise<Record<string, string>> {
  const answer = await fetch(`${hub.url}services/app/?token=secret-of-a-query`, { headers });
  return ((await answer.json()) as { headers: Record<string, string> }).headers;
}

/** The spans of a trace, once there is one of this name. */
async function spansOf(id: string, name: string) {
  const ofTrace = () => spans.filter((span) => span.traceId === id);
  await until(() => ofTrace().some((span) => span.name === name), `a span ${name}`);
  return ofTrace();
}

describe('with Hub.tracing', () => {
  test('an app is told the trace, whose id is that of the request', async () => {
    const headers = await seenByApp();
    const [, id = '', parentId = ''] =
      /^00-(.{32})-(.{16})-01$/.exec(headers['traceparent'] ?? '') ?? [];
    expect(headers['x-request-id']?.replaceAll('-', '')).toBe(id);
    const found = await spansOf(id, 'GET /services/app/');
    expect(found.find(({ name }) => name === 'forward')).toMatchObject({
      spanId: parentId,
      kind: 3,
    });
  });

  test('a trace goes on, whether it is recorded is decided here, and what is malformed is replaced', async () => {
    const own = await seenByApp({
      traceparent,
      tracestate: 'a=1, b=2',
      'x-request-id': 'build-42',
    });
    expect(own).toMatchObject({ 'x-request-id': 'build-42', tracestate: 'a=1,b=2' });
    expect(own['traceparent']).toMatch(new RegExp(`^00-${traceId}-(?!${sentParent}).{16}-01$`));
    const root = (await spansOf(traceId, 'GET /services/app/')).find(({ kind }) => kind === 2);
    expect(root).toMatchObject({ parentSpanId: sentParent, traceState: 'a=1,b=2' });

    const replaced = await seenByApp({ traceparent: 'rubbish', tracestate: 'a=1' });
    expect(replaced['traceparent']).toMatch(/^00-.{32}-.{16}-01$/);
    expect(replaced).not.toHaveProperty('tracestate');
  });

  test('a WebSocket has its trace, too', async () => {
    const socket = new WebSocket(`${hub.url.replace('http', 'ws')}services/app/socket`);
    const [message] = await once(socket, 'message');
    socket.close();
    const { headers } = JSON.parse(String(message)) as { headers: Record<string, string> };
    const [, id = ''] = /^00-(.{32})-.{16}-01$/.exec(headers['traceparent'] ?? '') ?? [];
    await spansOf(id, 'GET /services/app/');
  });

  test('guard, what a gateway asks its hub, forward and spawn are spans of it', async () => {
    const browser = new FakeBrowser();
    expect((await submitLogin(browser, hub.url, 'ada', 'test')).status).toBe(302);
    const spawned = await hub.api(serverPath('ada'), adminToken, {
      method: 'POST',
      headers: { traceparent },
    });
    expect([201, 202]).toContain(spawned.status);
    await untilServer(hub, serverPath('ada'), ({ ready }) => ready, 'ready');
    expect((await spansOf(traceId, 'spawn')).find(({ name }) => name === 'spawn')).toMatchObject({
      attributes: [{ key: 'hub.outcome', value: { stringValue: 'ready' } }],
    });

    const answer = await browser.open(`${hub.url}user/ada/`);
    const { headers } = JSON.parse(answer.body) as { headers: Record<string, string> };
    const id = headers['x-request-id'] ?? '';
    const found = await spansOf(id, 'GET /user/ada/');
    const names = found.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(['guard', 'forward']));
    const isAnswered = ({ name, spanId, process }: (typeof spans)[number]) =>
      name.startsWith('ask hub: ') &&
      spans.some((other) => other.parentSpanId === spanId && other.process !== process);
    await until(() => spans.some(isAnswered), 'a question of the gateway, and its answer');
  });

  test('says nothing of queries, and has the form of OTLP', async () => {
    expect(tenants).toEqual(new Set(['courses']));
    const written = JSON.stringify(bodies);
    expect(written).not.toContain('secret-of-a-query');
    expect(bodies[0]).toEqual({
      resourceSpans: [
        {
          resource: {
            attributes: ['service.name', 'service.version', 'service.instance.id'].map((key) => ({
              key,
              value: { stringValue: expect.any(String) },
            })),
          },
          scopeSpans: [
            { scope: { name: 'hub', version: expect.any(String) }, spans: expect.any(Array) },
          ],
        },
      ],
    });
    expect(await (await hub.api('/metrics', adminToken)).text()).toContain(
      'hub_trace_spans_dropped_total 0',
    );
  });
});
