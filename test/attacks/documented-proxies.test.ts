import { once } from 'node:events';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import WebSocket, { WebSocketServer } from 'ws';
import { documentedBlock, documentedBlocks, withoutTls } from '../support/documented-blocks.ts';
import { freePort } from '../support/free-port.ts';
import { hasHaproxy, startHaproxy } from '../support/haproxy.ts';
import { sendRaw } from '../support/raw-request.ts';
import { projectDirectory } from '../support/services.ts';
import { createTestHub, type TestHub } from '../support/test-hub.ts';
import { apacheOf, hasWebServer, nginxOf, startConfigured } from '../support/web-servers.ts';
import { startUpstream } from './proxy-harness.ts';
import { requestsNamingBoth } from './two-hosts.ts';

// Every proxy that the documentation puts before the hub, with one thing added: a name that it keeps closed, as one
// does for a part of the hub that only the staff's network may open. What is tried is to open that by the hub's name.

const open = 'hub.localhost';
const closed = 'staff.localhost';
const forHub = 'docs/how-to/behind-a-reverse-proxy.md';

let hub: TestHub;
let hubPort: number;
/** Requests to the closed name that came through. */
let reached: string[];
const stack = new AsyncDisposableStack();

beforeAll(async () => {
  reached = [];
  const staff = stack.use(
    await startUpstream((req, res) => {
      reached.push(`${req.method} ${req.url}`);
      res.end('the staff');
    }),
  );
  const app = stack.use(
    await startUpstream(
      ({ headers }, res) => void res.end(JSON.stringify(headers)),
      (server) => {
        const sockets = new WebSocketServer({ server });
        sockets.on('connection', (socket, { url }) => socket.send(`socket ${url}`));
      },
    ),
  );
  hubPort = await freePort();
  hub = stack.use(
    await createTestHub({
      Hub: { bind_url: `http://127.0.0.1:${hubPort}/`, trusted_proxies: ['127.0.0.1'] },
      Proxy: { extra_routes: { '/open/': app.url, [`${closed}/`]: staff.url } },
    }),
  );
});
afterAll(() => stack.disposeAsync());

const here = (block: string) =>
  block
    .replaceAll('hub.example.org', open)
    .replaceAll(
      /127\.0\.0\.1:8000|10\.0\.0\.1[12]:8000|hub-[ab]\.inside:8080/g,
      `127.0.0.1:${hubPort}`,
    )
    .replaceAll(/gateway-[ab]\.inside:8000/g, `127.0.0.1:${hubPort}`);

function startNginx(page: string) {
  return async (port: number) => {
    const staff = `server { listen 127.0.0.1:${port}; server_name ${closed}; return 403; }`;
    const documented = withoutTls(here(documentedBlock(page, 'nginx')), port);
    return await startConfigured('nginx', port, (directory) =>
      nginxOf(directory, `${documented}\n${staff}`),
    );
  };
}

function startCaddy(page: string) {
  return async (port: number) => {
    const options = `{\n  admin off\n  auto_https off\n  http_port ${port}\n  default_bind 127.0.0.1\n}`;
    const documented = here(documentedBlock(page, 'caddyfile')).replace(open, `http://${open}`);
    const staff = `http://${closed} {\n  respond 403\n}`;
    return await startConfigured('Caddy', port, () => `${options}\n${documented}\n${staff}\n`);
  };
}

async function startApache(port: number) {
  const documented = here(documentedBlock(forHub, 'apache'))
    .replace('*:443', `127.0.0.1:${port}`)
    .replaceAll(/^ *SSL.*\n/gm, '');
  const staff = `<VirtualHost 127.0.0.1:${port}>
    ServerName ${closed}
    <Location /> \n Require all denied \n </Location>
  </VirtualHost>`;
  const modules = ['proxy', 'proxy_http', 'headers'];
  return await startConfigured('Apache', port, (directory) =>
    apacheOf(directory, port, modules, `${documented}\n${staff}`),
  );
}

function startDocumentedHaproxy(configuration: () => string) {
  return async (port: number) => {
    const other = await freePort();
    const documented = here(configuration())
      .replace(/^ *bind :(?:443 ssl crt .*|8000)$/m, `  bind 127.0.0.1:${port}`)
      .replace('bind :8080', `bind 127.0.0.1:${other}`)
      // The name servers of the engine.
      .replaceAll(/^resolvers .*\n(?: .*\n)*|^ *default-server .*\n/gm, '')
      .replace(
        /^(frontend browsers\n(?: *#.*\n)* *bind .*\n)/m,
        `$1  http-request deny if { hdr(host),field(1,:) -i ${closed} }\n`,
      );
    return await startHaproxy(documented, [port]);
  };
}

const fronts = [
  { name: 'nginx', isThere: hasWebServer('nginx'), start: startNginx(forHub) },
  {
    name: 'nginx with subdomains',
    isThere: hasWebServer('nginx'),
    start: startNginx('docs/how-to/run-behind-tls.md'),
  },
  {
    name: 'nginx before several hubs',
    isThere: hasWebServer('nginx'),
    start: startNginx('docs/how-to/run-several-hubs.md'),
  },
  { name: 'Caddy', isThere: hasWebServer('Caddy'), start: startCaddy(forHub) },
  {
    name: 'Caddy for TLS',
    isThere: hasWebServer('Caddy'),
    start: startCaddy('docs/how-to/run-behind-tls.md'),
  },
  { name: 'Apache', isThere: hasWebServer('Apache'), start: startApache },
  {
    name: 'HAProxy before several hubs',
    isThere: hasHaproxy(),
    start: startDocumentedHaproxy(() =>
      documentedBlock('docs/how-to/run-several-hubs.md', 'haproxy'),
    ),
  },
  {
    name: 'HAProxy of the Compose file',
    isThere: hasHaproxy(),
    start: startDocumentedHaproxy(() =>
      readFileSync(join(projectDirectory, 'deploy/compose.haproxy.cfg'), 'utf8'),
    ),
  },
];

describe.each(fronts.filter(({ isThere }) => isThere))(
  'behind $name as documented',
  ({ start }) => {
    let port: number;
    let front: AsyncDisposable;
    beforeAll(async () => {
      port = await freePort();
      front = await start(port);
    });
    afterAll(() => front[Symbol.asyncDispose]());

    async function send(lines: readonly string[]) {
      const head = [...lines, 'Connection: close'].join('\r\n');
      return await sendRaw(`http://127.0.0.1:${port}/`, `${head}\r\n\r\n`);
    }

    test('the hub is reached, with WebSockets', async () => {
      const answer = await send(['GET /open/x HTTP/1.1', `Host: ${open}`]);
      expect(answer.status).toBe(200);
      expect(answer.text).toContain(`"x-forwarded-host":"${open}"`);
      const socket = new WebSocket(`ws://127.0.0.1:${port}/open/socket`, {
        headers: { host: open },
      });
      expect(String((await once(socket, 'message'))[0])).toBe('socket /open/socket');
      socket.terminate();
      expect((await send(['GET /x HTTP/1.1', `Host: ${closed}`])).status).toBe(403);
      // Without the proxy it is open.
      const direct = [`GET /x HTTP/1.1`, `Host: ${closed}`, 'Connection: close'].join('\r\n');
      expect((await sendRaw(hub.url, `${direct}\r\n\r\n`)).text).toContain('the staff');
      reached.length = 0;
    });

    test('row 16: no name that it keeps closed is opened by another', async () => {
      const requests = [
        ...requestsNamingBoth('/x', { open, closed }),
        ...requestsNamingBoth('/x', { open: closed, closed: open }),
      ];
      for (const value of [
        closed,
        `${open}, ${closed}`,
        `${closed}, ${open}`,
        `${open},${closed}`,
      ]) {
        for (const name of ['X-Forwarded-Host', 'X-Host', 'X-Original-Host', 'X_Forwarded_Host']) {
          requests.push(['GET /x HTTP/1.1', `Host: ${open}`, `${name}: ${value}`]);
          requests.push([
            'GET /x HTTP/1.1',
            `Host: ${open}`,
            `${name}: ${value}`,
            `${name}: ${open}`,
          ]);
        }
        requests.push(['GET /x HTTP/1.1', `Host: ${open}`, `Forwarded: host="${value}"`]);
      }
      requests.push(['GET /x HTTP/1.1', `Host: ${open}`, `X-Original-URL: http://${closed}/x`]);
      const opened: unknown[] = [];
      for (const lines of requests) {
        reached.length = 0;
        const { status } = await send(lines);
        if (reached.length > 0) opened.push({ lines, status });
      }
      expect(opened).toEqual([]);
    });

    test('row 16: what its client says in X-Forwarded-Host reaches no app', async () => {
      const lines = ['GET /open/x HTTP/1.1', `Host: ${open}`, 'X-Forwarded-Host: evil.example'];
      expect((await send(lines)).text).not.toContain('evil.example');
    });
  },
);

test.runIf(hasWebServer('nginx'))(
  'nginx that logs people in says itself who they are',
  async () => {
    const [, block = ''] = documentedBlocks(forHub, 'nginx');
    await using login = await startUpstream((_req, res) => {
      res.writeHead(204, { 'x-auth-request-user': 'ada', 'x-auth-request-groups': 'staff' }).end();
    });
    await using witness = await startUpstream(({ headers }, res) => {
      const { 'x-forwarded-user': user, 'x-forwarded-groups': groups, ...others } = headers;
      const isForged = JSON.stringify(others).includes('root');
      res.end(JSON.stringify({ user, groups, ...(isForged && { others }) }));
    });
    const port = await freePort();
    const servers = `server {
    listen 127.0.0.1:${port};
    location = /internal/check { proxy_pass ${login.url}; }
    ${block.replace('127.0.0.1:8000', new URL(witness.url).host)}
  }`;
    await using _nginx = await startConfigured('nginx', port, (directory) =>
      nginxOf(directory, servers),
    );
    const reported = await fetch(`http://127.0.0.1:${port}/x`, {
      headers: {
        'X-Forwarded-User': 'root',
        'x-forwarded-groups': 'admins',
        'X-FORWARDED-EMAIL': 'root@example.org',
        X_Forwarded_User: 'root',
      },
    });
    expect(await reported.json()).toEqual({ user: 'ada', groups: 'staff' });
  },
);

test('every proxy of the documentation is run by a test', () => {
  const isProxy =
    /\bproxy_pass\b|\breverse_proxy\b|\bProxyPass\b|^(?:backend|listen) |\bloadBalancer:|\bforwardAuth:/m;
  const found = globSync(['docs/**/*.md', 'deploy/**/*', 'examples/**/*', '*.md'], {
    cwd: projectDirectory,
    exclude: ['**/CHANGELOG.md'],
  }).flatMap((path) => {
    if (!/\.(?:md|cfg|conf|ya?ml)$/.test(path)) return [];
    const text = readFileSync(join(projectDirectory, path), 'utf8');
    const blocks = path.endsWith('.md')
      ? [...text.matchAll(/^```(\w+)\n(.*?)^```$/gms)]
      : [[text, path.split('.').at(-1), text]];
    return blocks.flatMap(([, language, block = '']) =>
      isProxy.test(block) ? [`${path} ${language}`] : [],
    );
  });
  expect(found.sort()).toEqual([
    'deploy/compose.haproxy.cfg cfg',
    'docs/how-to/behind-a-reverse-proxy.md apache',
    'docs/how-to/behind-a-reverse-proxy.md caddyfile',
    'docs/how-to/behind-a-reverse-proxy.md nginx',
    'docs/how-to/behind-a-reverse-proxy.md nginx',
    // Traefik is not in Debian: what it sends is in hosts.test.ts and forward-auth-asked.test.ts.
    'docs/how-to/behind-a-reverse-proxy.md yaml',
    // forward-auth.test.ts
    'docs/how-to/forward-auth.md caddyfile',
    'docs/how-to/forward-auth.md nginx',
    'docs/how-to/forward-auth.md yaml',
    // examples/from-authelia.test.ts
    'docs/how-to/from-authelia.md caddyfile',
    'docs/how-to/run-behind-tls.md caddyfile',
    'docs/how-to/run-behind-tls.md nginx',
    'docs/how-to/run-several-hubs.md haproxy',
    'docs/how-to/run-several-hubs.md nginx',
    // Before PostgreSQL: database-failover.test.ts
    'docs/how-to/scale.md haproxy',
  ]);
});
