import type { Server } from 'node:http';
import { WebSocketServer } from 'ws';
import { startUpstream } from '../attacks/proxy-harness.ts';
import { documentedBlock, withoutTls } from './documented-blocks.ts';
import { freePort } from './free-port.ts';
import { untilState, usersOpenServices } from './services.ts';
import { createTestHub } from './test-hub.ts';
import { nginxOf, startConfigured } from './web-servers.ts';

/** What reached an app behind the proxies. */
export interface SeenByApp {
  /** `closed` is the one that only members of `ops` may open. */
  readonly app: 'open' | 'closed';
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Names and values as they arrived. */
  readonly rawHeaders: readonly string[];
}

const admin = 'admin-service-token';
const page = 'docs/how-to/forward-auth.md';

/**
 * A hub with two apps behind nginx at `nginx.localhost` and `closed-nginx.localhost`, and behind Caddy likewise, as
 * docs/how-to/forward-auth.md sets them up. nginx has the public port, and passes what is for Caddy on to it. `headers`
 * is `Proxy.forward_auth_headers`.
 */
export async function createForwardAuthWorld({
  headers,
}: {
  readonly headers?: 'forwarded' | 'original';
} = {}) {
  const stack = new AsyncDisposableStack();
  const seen: SeenByApp[] = [];
  const startApp = async (app: SeenByApp['app']) =>
    stack.use(
      await startUpstream(
        ({ url = '', headers, rawHeaders }, res) => {
          if (headers['user-agent'] === 'hub-readiness-probe') {
            res.end();
            return;
          }
          seen.push({ app, url, headers: headers as Record<string, string>, rawHeaders });
          res.end(`app ${url}`);
        },
        (server: Server) => {
          const sockets = new WebSocketServer({ server });
          sockets.on('connection', (socket, { url = '', headers, rawHeaders }) => {
            // What an attack sends after its head is no WebSocket.
            socket.on('error', () => {});
            seen.push({ app, url, headers: headers as Record<string, string>, rawHeaders });
            socket.send(`${headers['x-hub-user']}`);
          });
        },
      ),
    );
  const [open, closed] = [await startApp('open'), await startApp('closed')];
  const [port, hubPort, caddyPort] = [await freePort(), await freePort(), await freePort()];
  const here = (block: string, host: string, app: { readonly url: string }) =>
    block
      .replaceAll('grafana.example.org', host)
      .replaceAll('127.0.0.1:8000', `127.0.0.1:${hubPort}`)
      .replaceAll('127.0.0.1:3000', new URL(app.url).host);
  const passOn = (name: string, target: number) => `server {
    listen 127.0.0.1:${port}; server_name ${name};
    location / { proxy_pass http://127.0.0.1:${target}; proxy_set_header Host $http_host;
      proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection $http_connection;
      proxy_set_header X-Forwarded-For $remote_addr; } }`;
  const documented = withoutTls(documentedBlock(page, 'nginx'), port);
  const servers = documented.match(/^server \{\n(?: .*\n|\n)*\}\n/gm) ?? [];
  const another = servers.find((block) => block.includes('server_name grafana')) ?? '';
  const nginx = [
    documented.replace(another, '').replace('127.0.0.1:8000', `127.0.0.1:${hubPort}`),
    // First: that is the one which gets what is for none.
    here(another, 'closed-nginx.localhost', closed),
    here(another, 'nginx.localhost', open),
    passOn('hub.localhost', hubPort),
    passOn('caddy.localhost', caddyPort),
  ].join('\n');
  const site = documentedBlock(page, 'caddyfile');
  const caddyfile = `{\n  admin off\n  auto_https off\n  http_port ${caddyPort}\n  default_bind 127.0.0.1\n}
${here(site, 'http://closed-caddy.localhost', closed)}
${here(site, 'http://caddy.localhost', open)}`;
  const rules = [
    { paths: ['/public/*'], methods: ['GET'], allow: 'everyone' },
    { paths: ['/admin/*'], groups: ['ops'] },
  ];
  const stricter = [
    { paths: ['/closed/*'], allow: 'nobody' },
    { paths: ['/office/*'], client_addresses: ['192.0.2.0/24'], allow: 'everyone' },
    ...rules,
  ];
  const access = 'forward-auth';
  const onlyOps = { access, rules: [{ paths: ['/*'], groups: ['ops'] }] };
  const hub = stack.use(
    await createTestHub({
      Hub: {
        bind_url: `http://127.0.0.1:${hubPort}/`,
        public_url: `http://hub.localhost:${port}/`,
        trusted_proxies: ['127.0.0.1'],
        load_roles: usersOpenServices,
        load_groups: [{ name: 'ops', users: ['olga'] }],
      },
      Proxy: {
        ...(headers !== undefined && { forward_auth_headers: headers }),
        extra_routes: {
          'nginx.localhost/': { access, name: 'nginx-app', rules },
          'caddy.localhost/': { access, name: 'caddy-app', rules },
          'closed-nginx.localhost/': { ...onlyOps, name: 'closed-nginx-app' },
          'closed-caddy.localhost/': { ...onlyOps, name: 'closed-caddy-app' },
          // The same app, asked about and forwarded to by the hub.
          'asked.localhost/': { access, name: 'asked-app', rules: stricter },
          'direct.localhost/': {
            target: open.url,
            access: 'gateway',
            name: 'direct-app',
            rules: stricter,
          },
        },
      },
    }),
  );
  await untilState(hub, 'nginx-app', 'ready');
  await untilState(hub, 'direct-app', 'ready');
  stack.use(await startConfigured('nginx', port, (directory) => nginxOf(directory, nginx)));
  stack.use(await startConfigured('Caddy', caddyPort, () => caddyfile));
  return {
    hub,
    seen,
    port,
    /** Where the hub itself listens. */
    direct: `http://127.0.0.1:${hubPort}/`,
    urlOf: (proxy: 'nginx' | 'caddy') => `http://${proxy}.localhost:${port}/`,
    async tokenOf(userName: string): Promise<string> {
      await hub.api(`/users/${userName}`, admin, { method: 'POST' });
      const path = `/users/${userName}/tokens`;
      const answer = await hub.api(path, admin, { method: 'POST', body: '{}' });
      return ((await answer.json()) as { token: string }).token;
    },
    /** The proxy itself, whatever host is asked for. */
    proxies: {
      nginx: `http://127.0.0.1:${port}/`,
      caddy: `http://127.0.0.1:${caddyPort}/`,
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

export type ForwardAuthWorld = Awaited<ReturnType<typeof createForwardAuthWorld>>;
