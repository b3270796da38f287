import { once } from 'node:events';
import { env } from 'node:process';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type RawPeer, rawClient, startRawUpstream } from '../attacks/proxy-harness.ts';
import { createMutator, createRandom } from '../attacks/request-mutator.ts';
import { freePort } from '../support/free-port.ts';
import { startHaproxy } from '../support/haproxy.ts';
import { runs } from '../support/properties.ts';
import { requires } from '../support/requires.ts';
import { createTestHub } from '../support/test-hub.ts';
import { apacheOf, startConfigured, startProxy } from '../support/web-servers.ts';

// The gateway beside four proxies that nobody here wrote, each before an upstream of its own: what the hub passes on
// and all of them refuse is a mistake of the hub.
//
// HUB_PROPERTY_SEED=7 HUB_FOREIGN_REQUESTS=20000 npx vitest run --project foreign test/foreign/proxies.test.ts
const requests = Number(env['HUB_FOREIGN_REQUESTS'] ?? 2_000);
const answers = requests / 4;
const atOnce = 25;
/** How long a proxy may wait for more of a request; a second time where it would make a difference. */
const patienceMs = 1_000;
const longPatienceMs = 4_000;
const { seed } = runs(1);

const programs = ['nginx', 'haproxy', 'apache2', 'caddy'] as const;
const places = ['hub', ...programs] as const;
type Place = (typeof places)[number];

/** An upstream that answers each request as its path asks, and a proxy before it. */
interface Stand {
  readonly port: number;
  readonly received: () => string;
}

/** Starts each proxy before an upstream of its own, which answers what `answerTo` says. */
async function startStands(answerTo: (request: string) => string) {
  const stack = new AsyncDisposableStack();
  async function upstream() {
    const answered = (peer: RawPeer) => {
      peer.socket.on('more', () => {
        if (!peer.text().includes('\r\n\r\n') || peer.socket.writableEnded) return;
        peer.socket.end(answerTo(peer.text()), 'latin1');
      });
    };
    return stack.use(await startRawUpstream(answered, { allowHalfOpen: true }));
  }
  type Upstream = Awaited<ReturnType<typeof upstream>>;
  const start: Readonly<Record<Place, (upstream: Upstream) => Promise<number>>> = {
    async hub({ url }) {
      const hub = stack.use(await createTestHub({ Proxy: { extra_routes: { '/open/': url } } }));
      return Number(new URL(hub.url).port);
    },
    nginx: async ({ url }) => stack.use(await startProxy(url)).port,
    async haproxy({ port: target }) {
      const port = await freePort();
      const text = `defaults\n  mode http\n  timeout connect 5s\n  timeout client 10s\n  timeout server 10s\n
frontend f\n  bind 127.0.0.1:${port}\n  default_backend b\nbackend b\n  server s 127.0.0.1:${target}\n`;
      stack.use(await startHaproxy(text, [port]));
      return port;
    },
    async apache2({ url }) {
      const port = await freePort();
      const configuration = (directory: string) =>
        apacheOf(directory, port, ['proxy', 'proxy_http'], `ProxyPass / ${url}/`);
      return stack.use(await startConfigured('Apache', port, configuration)).port;
    },
    async caddy({ port: target }) {
      const port = await freePort();
      const text = `{\n  admin off\n  auto_https off\n}\nhttp://:${port} {\n  reverse_proxy 127.0.0.1:${target}\n}\n`;
      return stack.use(await startConfigured('Caddy', port, () => text)).port;
    },
  };
  const stands = new Map<Place, Stand>();
  for (const place of places) {
    const behind = await upstream();
    stands.set(place, { port: await start[place](behind), received: behind.received });
  }
  return { stands, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

/** Sends bytes to a proxy; its answer, or what there is of it when the patience is over. */
async function exchange(
  port: number,
  bytes: string,
  ms: number,
  isWhole: boolean,
): Promise<string> {
  const client = await rawClient(port, bytes);
  const enough = isWhole
    ? client.closed
    : Promise.race([once(client.socket, 'more'), client.closed]);
  await Promise.race([enough, pause(ms)]);
  client.socket.destroy();
  return client.text();
}

/** Asks all of them of each case, and gives what the hub alone passes on. */
async function findAlone(
  texts: readonly string[],
  passes: (place: Place, text: string, index: number, ms: number) => Promise<boolean>,
): Promise<{ alone: string[]; counts: Record<Place, number> }> {
  const alone: string[] = [];
  const counts: Record<Place, number> = { hub: 0, nginx: 0, haproxy: 0, apache2: 0, caddy: 0 };
  for (let from = 0; from < texts.length; from += atOnce) {
    await Promise.all(
      texts.slice(from, from + atOnce).map(async (text, offset) => {
        const ask = (place: Place, ms: number) => passes(place, text, from + offset, ms);
        const verdicts = await Promise.all(places.map((place) => ask(place, patienceMs)));
        for (const [index, place] of places.entries()) if (verdicts[index]) counts[place] += 1;
        const [hub, ...others] = verdicts;
        if (!hub || others.includes(true)) return;
        const again = await Promise.all(programs.map((place) => ask(place, longPatienceMs)));
        if (!again.includes(true)) alone.push(text);
      }),
    );
  }
  return { alone, counts };
}

describe.skipIf(!requires(...programs))('beside nginx, HAProxy, Apache and Caddy', () => {
  const random = createRandom(seed);
  const { request, disturb } = createMutator(random);
  function disturbed(text: string): string {
    const changed = disturb(text);
    return changed === text ? disturbed(text) : changed;
  }

  describe('requests', () => {
    let world: Awaited<ReturnType<typeof startStands>>;
    beforeAll(async () => {
      world = await startStands(() => 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
    });
    afterAll(() => world[Symbol.asyncDispose]());

    test(`none of ${requests} malformed ones passes the hub alone`, {
      timeout: requests * 1_000,
    }, async () => {
      const inner = 'GET /open/inner HTTP/1.1\r\nHost: hub.test\r\n\r\n';
      const texts = Array.from({ length: requests }, (_, index) => {
        const [path, mark] = [`/open/case-${index}-`, `X-Case: case-${index}-`];
        const head = (method: string) =>
          `${method} ${path} HTTP/1.1\r\nHost: hub.test\r\n${mark}\r\n`;
        const plain = [
          `${head('GET')}\r\n`,
          `${head('POST')}Content-Length: 5\r\n\r\nhello`,
          `${head('PUT')}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n`,
        ];
        return disturbed(random.chance(0.5) ? random.pick(plain) : request(path, [mark], inner));
      });
      const passes = async (place: Place, text: string, index: number, ms: number) => {
        const stand = world.stands.get(place);
        if (stand === undefined) return false;
        await exchange(stand.port, text, ms, false);
        return stand.received().includes(`case-${index}-`);
      };
      const { alone, counts } = await findAlone(texts, passes);
      console.log(`${requests} requests, passed on: ${JSON.stringify(counts)}`);
      expect(alone).toEqual([]);
      expect(counts.hub).toBeGreaterThan(0);
    });
  });

  describe('answers', () => {
    const seeds = [
      'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Mark: mark\r\n\r\nhello',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-Mark: mark\r\n\r\n5\r\nhello\r\n0\r\n\r\n',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-Mark: mark\r\n\r\n5;a=b\r\nhello\r\n0\r\nX-T: 1\r\n\r\n',
      'HTTP/1.1 200 OK\r\nX-Mark: mark\r\n\r\nhello',
      'HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\nX-Mark: mark\r\n\r\nhello',
      'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Mark: mark\r\n\r\nhello',
      'HTTP/1.1 304 Not Modified\r\nETag: "a"\r\nX-Mark: mark\r\n\r\n',
      'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\nX-Mark: mark\r\n\r\n5\r\nhello\r\n0\r\n\r\n',
      'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\nX-Mark: mark\r\n\r\nhello',
    ];
    const texts = Array.from({ length: answers }, () => disturbed(random.pick(seeds)));
    let world: Awaited<ReturnType<typeof startStands>>;
    beforeAll(async () => {
      world = await startStands((asked) => texts[Number(/answer-(\d+)/.exec(asked)?.[1])] ?? '');
    });
    afterAll(() => world[Symbol.asyncDispose]());

    /** Whether an answer with the mark came to its end, by its own framing. */
    function isRelayed(text: string): boolean {
      const [, head = '', body = ''] =
        /^((?:HTTP\/1\.1 1\d\d[\s\S]*?\r\n\r\n)*HTTP[\s\S]*?)\r\n\r\n([\s\S]*)$/.exec(text) ?? [];
      if (!/^x-mark: *mark/im.test(head)) return false;
      const [, length] = /^content-length: *(\d+)/im.exec(head) ?? [];
      if (length !== undefined && !/ 304 /.test(head)) return body.length >= Number(length);
      return !/^transfer-encoding: *chunked/im.test(head) || body.endsWith('0\r\n\r\n');
    }

    test(`none of ${answers} malformed ones passes the hub alone`, {
      timeout: answers * 4_000,
    }, async () => {
      const passes = async (place: Place, _: string, index: number) => {
        const { port = 0 } = world.stands.get(place) ?? {};
        const bytes = `GET /open/answer-${index} HTTP/1.1\r\nHost: hub.test\r\nConnection: close\r\n\r\n`;
        return isRelayed(await exchange(port, bytes, longPatienceMs, true));
      };
      const { alone, counts } = await findAlone(texts, passes);
      console.log(`${answers} answers, passed on: ${JSON.stringify(counts)}`);
      expect(alone).toEqual([]);
      expect(counts.hub).toBeGreaterThan(0);
    });
  });
});
