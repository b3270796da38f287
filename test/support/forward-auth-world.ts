import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { WebSocketServer } from 'ws';
import { startUpstream } from '../attacks/proxy-harness.ts';
import { freePort } from './free-port.ts';
import { pathOf } from './requires.ts';
import { projectDirectory, untilState, usersOpenServices } from './services.ts';
import { createTestHub, until } from './test-hub.ts';

/** What reached the app behind the proxies. */
export interface SeenByApp {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** The configurations that a page tells its reader to write. */
function blockOf(page: string, language: string): string {
  const text = readFileSync(join(projectDirectory, page), 'utf8');
  const block = new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'ms').exec(text)?.[1];
  if (block === undefined) throw new Error(`${page} has no ${language}`);
  return block;
}

/**
 * A hub with an app behind nginx at `nginx.localhost` and behind Caddy at `caddy.localhost`, both as
 * docs/how-to/forward-auth.md sets them up. nginx has the public port, and passes what is for Caddy on to it.
 */
export async function createForwardAuthWorld() {
  const stack = new AsyncDisposableStack();
  const directory = mkdtempSync(join(tmpdir(), 'hub-forward-auth-'));
  stack.defer(() => rmSync(directory, { recursive: true, force: true }));
  const seen: SeenByApp[] = [];
  const app = stack.use(
    await startUpstream(
      ({ url = '', headers }, res) => {
        seen.push({ url, headers: headers as Record<string, string> });
        res.end(`app ${url}`);
      },
      (server: Server) => {
        const sockets = new WebSocketServer({ server });
        sockets.on('connection', (socket, { headers }) => socket.send(`${headers['x-hub-user']}`));
      },
    ),
  );
  const [port, hubPort, caddyPort] = [await freePort(), await freePort(), await freePort()];
  const here = (block: string, host: string) =>
    block
      .replaceAll('grafana.example.org', host)
      .replaceAll('127.0.0.1:8000', `127.0.0.1:${hubPort}`)
      .replaceAll('127.0.0.1:3000', new URL(app.url).host);
  const server = here(blockOf('docs/how-to/forward-auth.md', 'nginx'), 'nginx.localhost')
    .replace('listen 443 ssl;', `listen 127.0.0.1:${port};`)
    .replaceAll(/ssl_certificate\w* .*;/g, '');
  const passOn = (name: string, target: number) => `server {
    listen 127.0.0.1:${port}; server_name ${name};
    location / { proxy_pass http://127.0.0.1:${target}; proxy_set_header Host $http_host;
      proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection $http_connection;
      proxy_set_header X-Forwarded-For $remote_addr; } }`;
  const folders = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  writeFileSync(
    join(directory, 'nginx.conf'),
    `daemon off; master_process off; pid ${directory}/pid; error_log ${directory}/error.log;
    events {} http { access_log off;
    ${folders.map((name) => `${name}_temp_path ${directory}/${name};`).join(' ')}
    ${passOn('hub.localhost', hubPort)} ${passOn('caddy.localhost', caddyPort)} ${server} }`,
  );
  const site = here(blockOf('docs/how-to/forward-auth.md', 'caddyfile'), `http://caddy.localhost`);
  writeFileSync(
    join(directory, 'Caddyfile'),
    `{\n  admin off\n  auto_https off\n  http_port ${caddyPort}\n  default_bind 127.0.0.1\n}\n${site}`,
  );
  const rules = [
    { paths: ['/public/*'], methods: ['GET'], allow: 'everyone' },
    { paths: ['/admin/*'], groups: ['ops'] },
  ];
  const stricter = [
    { paths: ['/closed/*'], allow: 'nobody' },
    { paths: ['/office/*'], client_addresses: ['192.0.2.0/24'], allow: 'everyone' },
    ...rules,
  ];
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
        extra_routes: {
          'nginx.localhost/': { access: 'forward-auth', name: 'nginx-app', rules },
          'caddy.localhost/': { access: 'forward-auth', name: 'caddy-app', rules },
          // The same app, asked about and forwarded to by the hub.
          'asked.localhost/': { access: 'forward-auth', name: 'asked-app', rules: stricter },
          'direct.localhost/': {
            target: app.url,
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

  async function run(program: string, args: readonly string[], answersOn: number): Promise<void> {
    const env = { ...process.env, HOME: directory, XDG_DATA_HOME: directory };
    const child = spawn(program, args, { stdio: 'ignore', env });
    stack.defer(async () => {
      child.kill('SIGTERM');
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    });
    const answers = () =>
      fetch(`http://127.0.0.1:${answersOn}/`, { redirect: 'manual' }).then(
        () => true,
        () => false,
      );
    await until(answers, `${program} answers`);
  }
  const caddyfile = join(directory, 'Caddyfile');
  await run(pathOf('nginx'), ['-c', join(directory, 'nginx.conf'), '-p', directory], port);
  await run(pathOf('caddy'), ['run', '--config', caddyfile, '--adapter', 'caddyfile'], caddyPort);
  return {
    hub,
    seen,
    port,
    /** Where the hub itself listens. */
    direct: `http://127.0.0.1:${hubPort}/`,
    urlOf: (proxy: 'nginx' | 'caddy') => `http://${proxy}.localhost:${port}/`,
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}
