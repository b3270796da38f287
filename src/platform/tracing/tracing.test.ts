import { createServer, type IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { type AddressInfo, Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { pino } from 'pino';
import { describe, expect, test } from 'vitest';
import { Secret } from '../config/secret.ts';
import { recordOf } from '../http/request-log.ts';
import { createSpanExporter } from './span-exporter.ts';
import type { FinishedSpan } from './trace.ts';
import { readTraceParent, traceHeaders } from './trace-context.ts';
import { createTracing, type Tracing } from './tracing.ts';

const traceId = '0af7651916cd43dd8448eb211c80319c';
const spanId = 'b7ad6b7169203331';
const valid = `00-${traceId}-${spanId}-01`;
const log = pino({ enabled: false });

describe('traceparent (W3C Trace Context Level 2 §3.2)', () => {
  test.for([
    ['', 'no header'],
    [`00-${'0'.repeat(32)}-${spanId}-01`, 'trace-id of zeros'],
    [`00-${traceId}-${'0'.repeat(16)}-01`, 'parent-id of zeros'],
    [`ff-${traceId}-${spanId}-01`, 'version ff'],
    [`00-${traceId.toUpperCase()}-${spanId}-01`, 'upper case'],
    [`${valid}-more`, 'version 00 with more fields'],
    [`01-${traceId}-${spanId}-01more`, 'flags that go on'],
    [`${valid}, ${valid}`, 'sent twice'],
    [`00-${traceId.slice(1)}-${spanId}-01`, 'short trace-id'],
  ] as const)('%s is not taken: %s', ([traceparent]) => {
    expect(readTraceParent({ traceparent })).toBeUndefined();
  });

  test('is passed on as it came, one of a later version as version 00 (§4.3)', () => {
    for (const traceparent of [valid, `cc-${traceId}-${spanId}-03-what.the.future.brings`]) {
      const parent = readTraceParent({ traceparent });
      expect(parent && traceHeaders(parent)).toEqual(['traceparent', valid]);
    }
  });
});

describe('tracestate (§3.3)', () => {
  const stateOf = (tracestate: string) =>
    readTraceParent({ traceparent: valid, tracestate })?.state;

  test.for([
    ['rojo=00f067aa0ba902b7, congo=t61rcWkgMzE', 'rojo=00f067aa0ba902b7,congo=t61rcWkgMzE'],
    ['a=1,,b=2', 'a=1,b=2'],
    ['tenant@system=x y', 'tenant@system=x y'],
    ['', undefined],
    ['a=1,a=2', undefined],
    ['A=1', undefined],
    ['a', undefined],
    [Array.from({ length: 33 }, (_, index) => `k${index}=1`).join(','), undefined],
    [
      `a=${'x'.repeat(250)},b=${'y'.repeat(250)},c=${'z'.repeat(20)}`,
      `a=${'x'.repeat(250)},b=${'y'.repeat(250)}`,
    ],
  ] as const)('%s becomes %s', ([sent, passed]) => {
    expect(stateOf(sent)).toBe(passed);
  });
});

describe('which traces are recorded', () => {
  function tracingOf(settings: { trust_parent: boolean; sample_ratio: number }): Tracing {
    const endpoint = 'http://127.0.0.1:9/v1/traces';
    return createTracing({
      config: { endpoint, headers: {}, service_name: 'hub', ...settings },
      secrets: [new Secret('the secret of all processes')],
      instanceName: 'one',
      version: '1',
      log,
    });
  }

  async function flagsOf(
    settings: { trust_parent: boolean; sample_ratio: number },
    sent: readonly string[],
  ): Promise<string[]> {
    await using tracing = tracingOf(settings);
    const flags = (traceparent: string) => {
      const req = new IncomingMessage(new Socket());
      req.headers['traceparent'] = traceparent;
      let passed = '';
      tracing.request(req, new ServerResponse(req), () => {
        passed = recordOf(req).trace?.forwarding()[1]?.slice(-2) ?? '';
      });
      return passed;
    };
    return sent.map(flags);
  }

  test('one that is not recorded is passed on all the same, under an id that is valid', async () => {
    await using tracing = tracingOf({ trust_parent: false, sample_ratio: 0 });
    const passedOn = (headers: Readonly<Record<string, string>>) => {
      const req = new IncomingMessage(new Socket());
      Object.assign(req.headers, headers);
      let passed: readonly string[] = [];
      tracing.request(req, new ServerResponse(req), () => {
        passed = recordOf(req).trace?.forwarding() ?? [];
      });
      return { id: recordOf(req).id, passed };
    };
    const made = passedOn({});
    expect(made.id).toMatch(/^[0-9a-f]{32}$/);
    expect(made.passed).toEqual(['traceparent', `00-${made.id}-${made.id.slice(16)}-00`]);
    const ofClient = passedOn({ 'x-request-id': traceId });
    expect(ofClient.passed[1]).toContain(`-${traceId}-`);
    const useless = passedOn({ 'x-request-id': `1${'0'.repeat(31)}` });
    expect(useless.passed[1]).toMatch(/^00-(?!10{31}).{32}-(?!0{16}).{16}-00$/);
    const [, parent, , state] = passedOn({ traceparent: valid, tracestate: 'a=1' }).passed;
    expect(parent).toMatch(new RegExp(`^00-${traceId}-(?!${spanId}).{16}-00$`));
    expect(state).toBe('a=1');
  });

  test('the sender decides only where it is trusted', async () => {
    const sent = [valid, valid.replace(/01$/, '00')];
    const ofNobody = { trust_parent: false };
    expect(await flagsOf({ ...ofNobody, sample_ratio: 0 }, sent)).toEqual(['00', '00']);
    expect(await flagsOf({ ...ofNobody, sample_ratio: 1 }, sent)).toEqual(['01', '01']);
    expect(await flagsOf({ trust_parent: true, sample_ratio: 0 }, sent)).toEqual(['01', '00']);
  });

  test('processes of a hub record the same ones, as many as they are to', async () => {
    const sent = Array.from({ length: 2_000 }, (_, index) => {
      const id = index.toString(16).padStart(32, '1');
      return `00-${id}-${spanId}-00`;
    });
    const settings = { trust_parent: false, sample_ratio: 0.1 };
    const chosen = await flagsOf(settings, sent);
    expect(await flagsOf(settings, sent)).toEqual(chosen);
    const share = chosen.filter((flag) => flag === '01').length / sent.length;
    expect(share).toBeCloseTo(0.1, 1);
  });
});

/** A collector that answers as it is passed to. */
async function startCollector(answer: {
  status: number;
  headers?: Record<string, string>;
  body?: string;
}) {
  const got: { headers: IncomingHttpHeaders; spans: number }[] = [];
  const server = createServer((req, res) => {
    void text(req).then((body) => {
      const sent = JSON.parse(body);
      got.push({ headers: req.headers, spans: sent.resourceSpans[0].scopeSpans[0].spans.length });
      res.writeHead(answer.status, answer.headers).end(answer.body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    got,
    endpoint: `http://127.0.0.1:${port}/v1/traces`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const span: FinishedSpan = {
  traceId,
  spanId,
  name: 'GET',
  kind: 2,
  startTimeUnixNano: '1',
  endTimeUnixNano: '2',
  attributes: [],
};

function exporterTo(endpoint: string, now: () => number) {
  const config = { endpoint, headers: { authorization: new Secret('Bearer of-the-collector') } };
  return createSpanExporter({ config, resource: {}, version: '1', log, now });
}

describe('the exporter', () => {
  test('sends in batches, tries later what the collector cannot take, and drops what does not fit', async () => {
    const answer = { status: 503, headers: { 'retry-after': '7' } };
    await using collector = await startCollector(answer);
    let nowMs = 0;
    await using exporter = exporterTo(collector.endpoint, () => nowMs);
    for (let count = 0; count < 8_200; count += 1) exporter.add(span);
    expect(exporter.dropped).toBe(8);
    await exporter.run();
    answer.status = 200;
    nowMs = 6_999;
    await exporter.run();
    expect(collector.got).toHaveLength(1);
    nowMs = 7_000;
    await exporter.run();
    expect(collector.got).toHaveLength(1 + 8_192 / 512);
    expect(collector.got[0]?.headers).toMatchObject({
      authorization: 'Bearer of-the-collector',
      'content-type': 'application/json',
    });
    expect(exporter.dropped).toBe(8);
  });

  test.for([
    [{ status: 400 }, 2],
    [{ status: 200, body: '{"partialSuccess":{"rejectedSpans":"1"}}' }, 1],
    [{ status: 200, body: 'not JSON' }, 0],
  ] as const)('an answer of %o drops %i of two spans', async ([answer, dropped]) => {
    await using collector = await startCollector(answer);
    await using exporter = exporterTo(collector.endpoint, () => 0);
    exporter.add(span);
    exporter.add(span);
    await exporter.run();
    expect(exporter.dropped).toBe(dropped);
    expect(collector.got).toMatchObject([{ spans: 2 }]);
  });

  test('without a collector the hub stops all the same', async () => {
    const exporter = exporterTo('http://127.0.0.1:9/v1/traces', () => 0);
    exporter.add(span);
    await exporter[Symbol.asyncDispose]();
  });
});
