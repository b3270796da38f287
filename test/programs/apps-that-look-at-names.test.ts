import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { beforeEach, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { freePort } from '../support/free-port.ts';
import { pathOf, requires } from '../support/requires.ts';
import {
  openWithConsent,
  projectDirectory,
  untilState,
  usersOpenServices,
} from '../support/services.ts';
import { createTestHub } from '../support/test-hub.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'hub-names-'));
  return () => rmSync(folder, { recursive: true, force: true });
});

/**
 * A hub that starts an app as a guarded service with `settings`, and leads to it without them at `/plain/`.
 * Asks as a visitor who came by a name that the app does not know.
 */
async function startApp(commandFor: (port: number) => readonly string[], settings: object) {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const guarded = { url, access: 'gateway', strip_prefix: true };
  const environment = { HOME: folder };
  const hub = await createTestHub({
    Proxy: { extra_routes: { '/plain/': { target: url, strip_prefix: true } } },
    Hub: {
      load_roles: usersOpenServices,
      services: [
        {
          name: 'app',
          ...guarded,
          ...settings,
          command: commandFor(port),
          cwd: folder,
          environment,
        },
      ],
    },
  });
  await untilState(hub, 'app', 'ready');
  const browser = await hub.logIn('alice');
  const made = await hub.api('/users/alice/tokens', 'admin-service-token', {
    method: 'POST',
    body: '{}',
  });
  const { token } = (await made.json()) as { token: string };
  const { port: hubPort, pathname } = new URL(hub.url);
  const headers = { host: `hub.test:${hubPort}`, authorization: `token ${token}` };
  return {
    hub,
    browser,
    ask(path: string, { method = 'GET', ...further }: Record<string, string> = {}) {
      return new Promise<{ status: number; body: string }>((resolve, reject) => {
        const sent = {
          host: '127.0.0.1',
          port: hubPort,
          method,
          path: `${pathname}${path}`,
        };
        request({ ...sent, headers: { ...headers, ...further } }, (answer) => {
          text(answer).then((body) => resolve({ status: answer.statusCode ?? 0, body }), reject);
        })
          .on('error', reject)
          .end();
      });
    },
    [Symbol.asyncDispose]: () => hub[Symbol.asyncDispose](),
  };
}

test('Vite serves its pages and its WebSocket', async () => {
  writeFileSync(join(folder, 'index.html'), '<p>made with Vite</p>');
  const vite = join(projectDirectory, 'node_modules/vite/bin/vite.js');
  await using app = await startApp(
    (port) => [process.execPath, vite, '--host=127.0.0.1', `--port=${port}`, '--strictPort'],
    { host: 'upstream' },
  );
  expect(await app.ask('plain/')).toMatchObject({ status: 403 });
  expect(await app.ask('services/app/')).toMatchObject({
    status: 200,
    body: expect.stringContaining('made with Vite'),
  });
  // In a browser: a program's hub token would be taken from the address, as Vite's own is there too.
  const { body } = await app.ask('services/app/@vite/client');
  const [, token = ''] = /wsToken = "([^"]+)"/.exec(body) ?? [];
  const page = `${app.hub.url}services/app/`;
  await openWithConsent(app.browser, page);
  const socket = new WebSocket(`${page.replace('http', 'ws')}?token=${token}`, 'vite-hmr', {
    headers: { cookie: app.browser.cookieHeader(page), origin: new URL(page).origin },
  });
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  socket.once('message', (data) => resolve(String(data))).once('error', reject);
  expect(JSON.parse(await promise)).toEqual({ type: 'connected' });
  socket.terminate();
});

test.skipIf(!requires('webpack'))(
  'webpack-dev-server serves what it builds, and its WebSocket',
  async () => {
    writeFileSync(join(folder, 'entry.js'), "document.title = 'made with webpack';");
    const packages = join(projectDirectory, 'foreign', 'node_modules', 'any');
    const script = join(folder, 'serve.cjs');
    writeFileSync(
      script,
      `const load = require('node:module').createRequire(process.argv[2]);
    const Server = load('webpack-dev-server');
    const compiler = load('webpack')({ mode: 'development', context: __dirname, entry: './entry.js' });
    new Server({ host: '127.0.0.1', port: Number(process.argv[3]), static: __dirname }, compiler).start();`,
    );
    await using app = await startApp((port) => [process.execPath, script, packages, String(port)], {
      host: 'upstream',
    });
    expect(await app.ask('plain/main.js')).toMatchObject({ status: 403 });
    expect(await app.ask('services/app/main.js')).toMatchObject({
      status: 200,
      body: expect.stringContaining('made with webpack'),
    });
    const page = `${app.hub.url}services/app/`;
    await openWithConsent(app.browser, page);
    const socket = new WebSocket(`${page.replace('http', 'ws')}ws`, {
      headers: { cookie: app.browser.cookieHeader(page), origin: new URL(page).origin },
    });
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    socket.once('message', (data) => resolve(String(data))).once('error', reject);
    expect(JSON.parse(await promise)).toEqual({ type: 'hot' });
    socket.terminate();
  },
);

test.skipIf(!requires('syncthing'))('Syncthing shows its page', async () => {
  await promisify(execFile)(pathOf('syncthing'), ['generate', `--home=${folder}`], {
    env: { HOME: folder },
  });
  const config = join(folder, 'config.xml');
  writeFileSync(
    config,
    readFileSync(config, 'utf8')
      .replace('<listenAddress>default<', '<listenAddress>tcp://127.0.0.1:0<')
      .replaceAll(
        /<((?:global|local)AnnounceEnabled|relaysEnabled|natEnabled)>true</g,
        '<$1>false<',
      ),
  );
  await using app = await startApp(
    (port) => [
      pathOf('syncthing'),
      'serve',
      '--no-browser',
      `--home=${folder}`,
      `--gui-address=127.0.0.1:${port}`,
    ],
    { host: 'upstream' },
  );
  expect(await app.ask('plain/')).toMatchObject({
    status: 403,
    body: expect.stringContaining('Host check error'),
  });
  expect(await app.ask('services/app/')).toMatchObject({
    status: 200,
    body: expect.stringContaining('Syncthing'),
  });
});

test.skipIf(!requires('transmission-daemon'))('Transmission shows its page', async () => {
  writeFileSync(
    join(folder, 'settings.json'),
    JSON.stringify({
      'bind-address-ipv4': '127.0.0.1',
      'bind-address-ipv6': '::1',
      'dht-enabled': false,
      'peer-port-random-on-start': true,
      'port-forwarding-enabled': false,
      'rpc-bind-address': '127.0.0.1',
      'rpc-authentication-required': false,
    }),
  );
  await using app = await startApp(
    (port) => [
      pathOf('transmission-daemon'),
      '--foreground',
      '--config-dir',
      folder,
      '--port',
      String(port),
    ],
    { host: 'upstream' },
  );
  expect(await app.ask('plain/transmission/rpc')).toMatchObject({ status: 421 });
  // It wants to see a session id of its own now.
  expect(await app.ask('services/app/transmission/rpc')).toMatchObject({ status: 409 });
  expect(await app.ask('services/app/transmission/web/')).toMatchObject({
    status: 200,
    body: expect.stringContaining('Transmission'),
  });
});

test.skipIf(!requires('radicale'))(
  'Radicale knows its user, whom no visitor can choose',
  async () => {
    await using app = await startApp(
      (port) => [
        pathOf('radicale'),
        `--server-hosts=127.0.0.1:${port}`,
        '--auth-type=http_x_remote_user',
        '--rights-type=owner_only',
        `--storage-filesystem-folder=${folder}`,
      ],
      { identity_headers: { user: 'X-Remote-User' } },
    );
    const asked = { method: 'PROPFIND', depth: '0' };
    expect(await app.ask('plain/alice/', asked)).toMatchObject({ status: 403 });
    expect(await app.ask('services/app/alice/', asked)).toMatchObject({ status: 207 });
    for (const sent of [
      { 'x-remote-user': 'bob' },
      { connection: 'x-remote-user', 'x-remote-user': 'bob' },
    ]) {
      expect(await app.ask('services/app/bob/', { ...asked, ...sent })).toMatchObject({
        status: 403,
      });
      expect(await app.ask('plain/bob/', { ...asked, ...sent })).toMatchObject({ status: 403 });
    }
  },
);
