import { once } from 'node:events';
import { connect } from 'node:net';
import type { FakeBrowser } from '../support/fake-browser.ts';
import { openWithConsent, untilState, usersOpenServices } from '../support/services.ts';
import {
  createTestHub,
  type TestHub,
  type TestHubConfig,
  type TestHubOptions,
} from '../support/test-hub.ts';
import { type RawPeer, rawPeer, startUpstream } from './proxy-harness.ts';

/** A request as an application behind the hub saw it. */
export interface SeenRequest {
  readonly app: string;
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

/** An application that notes each request it understands, and answers with its address. */
export async function startWitnessApp(app: string, seen: SeenRequest[]) {
  return startUpstream(
    (req, res) => {
      let body = '';
      req.setEncoding('latin1').on('data', (chunk: string) => {
        body += chunk;
      });
      req.on('error', () => {});
      req.on('end', () => {
        if (req.headers['user-agent'] === 'hub-readiness-probe') {
          res.end();
          return;
        }
        seen.push({
          app,
          method: req.method ?? '',
          url: req.url ?? '',
          headers: { ...req.headers },
          body,
        });
        res.setHeader('x-app', app);
        res.end(`${app} ${req.url}`);
      });
    },
    (server) => {
      server.on('upgrade', (req, socket) => {
        seen.push({
          app,
          method: 'UPGRADE',
          url: req.url ?? '',
          headers: { ...req.headers },
          body: '',
        });
        socket.on('error', () => {});
        socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n');
      });
    },
  );
}

/**
 * A whole hub with three applications behind it: `guarded` by the gateway, `own` that checks visitors
 * itself, and an `open` route for everybody. What they saw is in `seen`.
 */
export async function startAttackedHub(config: TestHubConfig = {}, options: TestHubOptions = {}) {
  const seen: SeenRequest[] = [];
  const stack = new AsyncDisposableStack();
  const guarded = stack.use(await startWitnessApp('guarded', seen));
  const own = stack.use(await startWitnessApp('own', seen));
  const open = stack.use(await startWitnessApp('open', seen));
  const hub = stack.use(
    await createTestHub(
      {
        ...config,
        Hub: {
          load_roles: usersOpenServices,
          ...config.Hub,
          services: [
            {
              name: 'guarded',
              url: guarded.url,
              api_token: 'guarded-service-token',
              access: 'gateway',
              oauth_no_confirm: true,
            },
            { name: 'own', url: own.url, api_token: 'own-service-token' },
            ...((config.Hub?.['services'] as unknown[] | undefined) ?? []),
          ],
        },
        Proxy: {
          ...config.Proxy,
          extra_routes: {
            '/open/': open.url,
            ...(config.Proxy?.['extra_routes'] as object | undefined),
          },
        },
      },
      options,
    ),
  );
  await untilState(hub, 'guarded', 'ready');
  await untilState(hub, 'own', 'ready');
  const port = Number(new URL(hub.url).port);
  return {
    hub,
    port,
    url: hub.url,
    seen,
    /** A browser that has opened the guarded application. */
    async visitor(userName: string): Promise<FakeBrowser> {
      const browser = await hub.logIn(userName);
      await openWithConsent(browser, `${hub.url}services/guarded/`);
      seen.length = 0;
      return browser;
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

export type AttackedHub = Awaited<ReturnType<typeof startAttackedHub>>;

/** Opens a connection to a hub and sends bytes as they are. */
export async function attack(hub: { readonly port: number }, text = ''): Promise<RawPeer> {
  const socket = connect({ port: hub.port, host: '127.0.0.1' });
  const peer = rawPeer(socket);
  await once(socket, 'connect');
  if (text !== '') peer.write(text);
  return peer;
}

/** Sends bytes and returns everything that came back until the hub closed the connection. */
export async function answerTo(hub: { readonly port: number }, text: string): Promise<string> {
  const peer = await attack(hub, text);
  await peer.closed;
  return peer.text();
}

/** A request in bytes: `Host` and `Connection: close` are added unless they are given. */
export function bytesOf(requestLine: string, headers: readonly string[] = [], body = ''): string {
  const has = (name: string) => headers.some((line) => line.toLowerCase().startsWith(`${name}:`));
  const lines = [
    `${requestLine} HTTP/1.1`,
    ...(has('host') ? [] : ['Host: hub.test']),
    ...(has('connection') ? [] : ['Connection: close']),
    ...headers,
  ];
  return `${lines.join('\r\n')}\r\n\r\n${body}`;
}

/** The opening handshake of a WebSocket in bytes. */
export function handshakeOf(path: string, headers: readonly string[] = []): string {
  return bytesOf(`GET ${path}`, [
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    ...headers,
  ]);
}

/** Whether the hub still answers. */
export async function isHealthy(hub: TestHub): Promise<boolean> {
  const answer = await fetch(`${hub.url}hub/health`);
  await answer.text();
  return answer.status === 200;
}
