/**
 * CPU time of one forwarded request: the hub's forwarder beside http-proxy-3 and the
 * proxy built on it, each with a keep-alive agent.
 * Each proxy runs alone in a process of its own; run with `node bench/gateway-forwarder.ts`.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { Agent, createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { ProxyServer } from 'http-proxy-3';
import { pino } from 'pino';
import { proxySection } from '../src/config/sections-schema.ts';
import { createClientAddressReader } from '../src/http/client-address.ts';
import { canonicalPath } from '../src/proxy/canonical-path.ts';
import { createForwarder } from '../src/proxy/forwarder.ts';
import { createLiveConnections } from '../src/proxy/live-connections.ts';
import { createRouteTable } from '../src/proxy/route-table.ts';

const connections = 50;
const requestsPerRound = 60_000;
const rounds = 3;
const requestHead =
  'GET /user/u7/api/contents HTTP/1.1\r\nHost: hub.test\r\nUser-Agent: Mozilla/5.0 (X11; Linux)\r\n' +
  'Accept: application/json\r\nAccept-Encoding: gzip, br\r\nAccept-Language: en\r\n' +
  'Cookie: _xsrf=2|abc|def; hub-session-id=0123456789abcdef; hub-user-u7=opaque\r\n\r\n';

const servers = {
  upstream() {
    const body = Buffer.alloc(1024, 'x');
    return createServer((_req, res) => {
      res.writeHead(200, { 'content-type': 'text/plain', 'content-length': String(body.length) });
      res.end(body);
    });
  },

  hub(target: string) {
    const log = pino({ level: 'silent' });
    const routes = createRouteTable({ reservedPrefixes: ['/hub/'] });
    for (let index = 0; index < 1000; index++) {
      const userName = `u${index}`;
      const owner = { kind: 'server', userName, serverName: '' } as const;
      routes.add({ prefix: `/user/${userName}/`, target, access: 'server', owner });
    }
    const clientAddress = createClientAddressReader([]);
    const forwarder = createForwarder({
      config: proxySection.parse({}),
      log,
      routes,
      liveConnections: createLiveConnections(),
      answerError: (_req, res, error) => res.writeHead(502).end(error.message),
    });
    return createServer((req, res) => {
      const path = canonicalPath(req.url ?? '');
      const match = path === undefined ? undefined : routes.match(path);
      if (match?.kind !== 'forward') {
        res.writeHead(404).end();
        return;
      }
      const { route } = match;
      forwarder.forward(req, res, { route, path: match.path, client: clientAddress(req) });
    });
  },

  'http-proxy-3'(target: string) {
    const agent = new Agent({ keepAlive: true, maxFreeSockets: 256 });
    const proxy = new ProxyServer({ target, agent, xfwd: true });
    proxy.on('error', () => {});
    return createServer((req, res) => proxy.web(req, res));
  },

  async 'configurable-http-proxy'(target: string) {
    // @ts-expect-error the package has no types
    const { ConfigurableProxy } = await import('configurable-http-proxy');
    const proxy = new ConfigurableProxy({ log: pino({ level: 'silent' }), includePrefix: true });
    for (let index = 0; index < 1000; index++) await proxy.addRoute(`/user/u${index}`, { target });
    return proxy.proxyServer as ReturnType<typeof createServer>;
  },
};

type ServerName = keyof typeof servers;

const proxies = ['hub', 'http-proxy-3', 'configurable-http-proxy'] as const;

const [, , role, target = ''] = process.argv;
if (role === undefined) await measureAll();
else await serve(role as ServerName);

async function serve(name: ServerName): Promise<void> {
  const server = await servers[name](target);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  process.on('message', () =>
    process.send?.({ cpu: process.cpuUsage(), rss: process.memoryUsage.rss() }),
  );
  process.send?.({ port: (server.address() as AddressInfo).port });
}

async function measureAll(): Promise<void> {
  const upstream = await start('upstream');
  for (const name of proxies) {
    const proxy = await start(name, `http://127.0.0.1:${upstream.port}`);
    await load(proxy.port, requestsPerRound);
    const results: string[] = [];
    for (let round = 0; round < rounds; round++) {
      const before = await usage(proxy.process);
      const started = performance.now();
      await load(proxy.port, requestsPerRound);
      const seconds = (performance.now() - started) / 1000;
      const { cpu, rss } = await usage(proxy.process);
      const micros = cpu.user + cpu.system - before.cpu.user - before.cpu.system;
      results.push(
        `${(micros / requestsPerRound).toFixed(1)} µs CPU, ` +
          `${Math.round(requestsPerRound / seconds)} req/s, ${Math.round(rss / 2 ** 20)} MiB`,
      );
    }
    console.log(`${name}\n  ${results.join('\n  ')}`);
    proxy.process.kill();
  }
  upstream.process.kill();
}

async function start(name: ServerName, targetUrl = '') {
  const child = fork(import.meta.filename, [name, targetUrl]);
  const [{ port }] = (await once(child, 'message')) as [{ port: number }];
  return { process: child, port };
}

async function usage(child: ChildProcess) {
  const answered = once(child, 'message');
  child.send('usage');
  const [answer] = await answered;
  return answer as { cpu: NodeJS.CpuUsage; rss: number };
}

/** Keeps one request in flight on each connection; answers are told apart by their length alone. */
async function load(port: number, total: number): Promise<void> {
  let left = total;
  await Promise.all(
    Array.from({ length: connections }, async () => {
      const socket = connect(port, '127.0.0.1').setNoDelay(true);
      let answerLength = 0;
      let received = 0;
      const sendNext = () => {
        if (left-- > 0) socket.write(requestHead);
        else socket.end();
      };
      socket.on('data', (chunk) => {
        received += chunk.length;
        if (answerLength === 0) {
          const text = chunk.toString('latin1');
          if (!text.startsWith('HTTP/1.1 200')) throw new Error(text);
          answerLength = text.indexOf('\r\n\r\n') + 4 + 1024;
        }
        if (received < answerLength) return;
        received -= answerLength;
        sendNext();
      });
      await once(socket, 'connect');
      sendNext();
      await once(socket, 'close');
    }),
  );
}
