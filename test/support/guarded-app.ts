import type { AddressInfo } from 'node:net';
import { type Logger, pino } from 'pino';
import { type SingleuserOptions, startSingleuser } from '../../src/singleuser/singleuser.ts';
import { FakeBrowser } from './fake-browser.ts';
import { startFakeHub } from './fake-hub.ts';

const alice = { name: 'alice', groups: ['staff', 'a,b'], scopes: ['access:servers!server=alice/'] };

/** A web app without a login: says what it was asked, redirects, sets cookies, echoes WebSockets. */
const appSource = `
  import { createServer } from 'node:http';
  import { text } from 'node:stream/consumers';
  import { WebSocketServer } from 'ws';
  const server = createServer(async (request, response) => {
    const { method, url, headers } = request;
    const path = url.split('?')[0];
    if (path.endsWith('/redirect')) response.writeHead(302, { location: '/next' });
    if (path.endsWith('/cookie')) {
      response.setHeader('set-cookie', ['mine=1; Path=/', 'hub-user-alice=stolen; Path=/', 'service-x=1']);
    }
    if (path.endsWith('/abort')) {
      response.write('half');
      return setImmediate(() => response.destroy());
    }
    if (path.endsWith('/trailers')) {
      response.write('a part, ');
      response.addTrailers({ 'X-Sum': '5', 'X-Hub-User': 'root' });
      return response.end('the rest');
    }
    const body = await text(request);
    response.end(JSON.stringify({ method, url, headers, body, environment: process.env, pid: process.pid }));
  });
  const sockets = new WebSocketServer({ server });
  sockets.on('connection', (socket, request) => {
    socket.send(request.url + ' ' + request.headers['x-hub-user']);
    socket.on('message', (data) => socket.send(data));
  });
  const [where] = process.argv.slice(1);
  server.listen(where === undefined ? Number(process.env.PORT) : where, where === undefined ? '127.0.0.1' : undefined);
`;
/** The command that runs it, to which a port or a path to listen on may be added. */
export const appCommand = [process.execPath, '--input-type=module', '--eval', appSource];

/** What the app says of a request that it got. */
export interface Echo {
  readonly method: string;
  readonly url: string;
  readonly headers: Record<string, string>;
  readonly body: string;
  readonly environment: Record<string, string>;
  readonly pid: number;
}

/** Runs an app behind hub-singleuser, for alice, with a fake hub. */
export async function startGuardedApp(
  options: Partial<SingleuserOptions> = {},
  variables: Record<string, string> = {},
  log: Logger = pino({ level: 'silent' }),
) {
  const hub = await startFakeHub();
  hub.loggedIn = alice;
  hub.users.set('good', alice);
  hub.clients.set('hub-user-alice', 'the-token-of-the-server');
  const environment = {
    PATH: process.env['PATH'],
    HUB_API_TOKEN: 'the-token-of-the-server',
    HUB_API_URL: hub.apiUrl,
    HUB_BASE_URL: `${hub.origin}/`,
    HUB_CLIENT_ID: 'hub-user-alice',
    HUB_USER: 'alice',
    HUB_SERVICE_PREFIX: '/user/alice/',
    HUB_SERVICE_URL: 'http://127.0.0.1:0/',
    HUB_OAUTH_SCOPES: '["access:servers!server=alice/","access:servers"]',
    ...variables,
  };
  const singleuser = await startSingleuser(
    {
      command: appCommand,
      usesSocket: false,
      listensElsewhere: false,
      stripsPrefix: false,
      passesToken: false,
      readyPath: '',
      cacheMaxAgeSeconds: 300,
      killAfterSeconds: 5,
      ...options,
    },
    { environment, log },
  );
  const { port } = singleuser.server.address() as AddressInfo;
  const origin = `http://127.0.0.1:${port}`;
  hub.publicOrigin = origin;
  return {
    hub,
    singleuser,
    port,
    origin,
    prefix: `${origin}/user/alice/`,
    browser: new FakeBrowser(),
    async echo(path: string, init: RequestInit = {}): Promise<Echo> {
      const headers = { authorization: 'token good', ...(init.headers as Record<string, string>) };
      const answer = await fetch(`${origin}${path}`, { ...init, headers });
      return (await answer.json()) as Echo;
    },
    async [Symbol.asyncDispose]() {
      await singleuser[Symbol.asyncDispose]();
      await hub[Symbol.asyncDispose]();
    },
  };
}
