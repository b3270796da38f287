import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, createServer as createSocketServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { FakeBrowser } from '../support/fake-browser.ts';
import { requires } from '../support/requires.ts';
import { adminToken } from '../support/server-hub.ts';
import { sharePrograms } from '../support/shared-programs.ts';
import { createTestHub, type TestHubConfig } from '../support/test-hub.ts';
import { hasWebServer, startProxy } from '../support/web-servers.ts';

let directory: string;
let path: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'hub-socket-'));
  path = join(directory, 'hub.sock');
});
afterEach(() => rm(directory, { recursive: true, force: true }));

const onSocket = (given: TestHubConfig = {}) =>
  createTestHub({
    // A socket is for a proxy, and so for the network.
    DummyAuthenticator: { password: 'test', allow_non_loopback: true },
    ...given,
    Hub: { bind_url: `unix://${path}`, public_url: 'http://localhost/', ...given.Hub },
  });

describe.runIf(hasWebServer('nginx'))('a hub on a Unix socket, behind nginx', () => {
  test('logs people in, forwards WebSockets, and believes whom nginx names', async () => {
    const app: Server = createServer((_request, response) => response.end('the app'));
    new WebSocketServer({ server: app }).on('connection', (socket) =>
      socket.on('message', (data) => socket.send(data)),
    );
    await once(app.listen(0, '127.0.0.1'), 'listening');
    await using proxy = await startProxy(`http://unix:${path}`);
    const { port } = app.address() as AddressInfo;
    await using hub = await onSocket({
      Hub: {
        bind_url: `http+unix://${encodeURIComponent(path)}/team/`,
        public_url: `${proxy.url}/team/`,
        services: [{ name: 'app', url: `http://127.0.0.1:${port}`, access: 'public' }],
      },
    });
    await hub.logIn('ada');
    const answer = await hub.api('/users/ada/sessions', adminToken);
    expect(await answer.json()).toMatchObject({ sessions: [{ address: '127.0.0.1' }] });

    const webSocket = new WebSocket(`${proxy.url.replace('http', 'ws')}/team/services/app/`);
    await once(webSocket, 'open');
    webSocket.send('hello');
    expect(String((await once(webSocket, 'message'))[0])).toBe('hello');
    webSocket.close();
    app.close();
  });

  test('needs no secret for header logins, unless all may open the socket', async () => {
    const header = (Hub: object = {}) =>
      onSocket({ Hub: { authenticator_class: 'header', ...Hub }, HeaderAuthenticator: {} });
    await expect(header({ bind_socket_mode: '0666' })).rejects.toThrow(
      /hub\.sock.*could log in as any user/,
    );
    await using proxy = await startProxy(
      `http://unix:${path}`,
      'proxy_set_header X-Forwarded-User $arg_as;',
    );
    await using hub = await header({ public_url: proxy.url });
    const browser = new FakeBrowser();
    await browser.request(`${hub.url}hub/login?as=ada`, { headers: { 'x-forwarded-user': 'eve' } });
    expect((await browser.request(`${hub.url}hub/home`)).body).toContain('Hello, ada');
  });
});

describe('the socket', () => {
  test('has its mode, and goes with the hub', async () => {
    const hub = await onSocket();
    expect((await stat(path)).mode & 0o777).toBe(0o660);
    await hub[Symbol.asyncDispose]();
    expect(existsSync(path)).toBe(false);
    await using other = await onSocket({ Hub: { bind_socket_mode: '0600' } });
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect(other.url).toBe('http://localhost/');
  });

  test.runIf(requires('root'))('cannot be opened by other accounts', async () => {
    await using programs = await sharePrograms();
    await using _hub = await onSocket();
    await chmod(directory, 0o755);
    const script = `require('net').connect(process.argv[1]).on('connect', () => process.exit(0)).on('error', ({ code }) => process.exit(code === 'EACCES' ? 13 : 1))`;
    const child = spawn(programs.node, ['-e', script, path], { uid: 65_534, gid: 65_534 });
    expect(await once(child, 'exit')).toEqual([13, null]);
  });

  test('of a hub that was killed is replaced', async () => {
    const script = `require('net').createServer().listen(process.argv[1], () => process.kill(process.pid, 'SIGKILL'))`;
    await once(spawn(process.execPath, ['-e', script, path]), 'exit');
    expect(existsSync(path)).toBe(true);
    await using hub = await onSocket();
    expect(hub.hub.publicServer.address()).toBe(path);
  });

  test('of a living program, or a file in its place, is left alone', async () => {
    const other = createSocketServer().listen(path);
    await once(other, 'listening');
    await expect(onSocket()).rejects.toThrow(
      `cannot listen at ${path} (Hub.bind_url): something else listens there already`,
    );
    expect(existsSync(path)).toBe(true);
    await once(other.close(), 'close');
    await writeFile(path, 'precious');
    await expect(onSocket()).rejects.toThrow('a file is there that is not a socket');
    expect((await stat(path)).size).toBe(8);
  });

  test.each([
    [{ bind_url: 'unix:///no/such/folder/hub.sock' }, 'its folder does not exist'],
    [{ bind_url: `unix:///tmp/${'x'.repeat(120)}` }, 'too long: 125 bytes'],
    [{ bind_url: 'http+unix://hub.sock' }, 'needs the whole path'],
    [{ bind_url: 'unix://hub.sock' }, 'Hub.bind_url'],
    [
      { bind_url: 'https://hub.example.org' },
      'Hub.certificates: is needed, or acme, since bind_url is an https:// address',
    ],
    [{ public_url: undefined }, 'Hub.public_url: is needed, since bind_url is a socket'],
    [{ bind_socket_mode: 'rw' }, 'Hub.bind_socket_mode'],
  ])('of %j is refused', async (Hub, reason) => {
    await expect(onSocket({ Hub })).rejects.toThrow(reason);
  });
});
