import { createHash, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

/** A user as the fake hub answers for her token. */
export interface FakeUser {
  readonly name: string;
  readonly kind?: 'user' | 'service';
  readonly groups?: readonly string[];
  readonly scopes: readonly string[];
}

interface IssuedCode {
  readonly user: FakeUser;
  readonly redirectUri: string;
  readonly codeChallenge: string;
  readonly clientId: string;
}

/** The hub as its clients see it: authorize, token, user and activity. Everybody consents at once. */
export interface FakeHub extends AsyncDisposable {
  readonly origin: string;
  readonly apiUrl: string;
  /** Owners of the tokens the hub knows; delete one to revoke it. */
  readonly users: Map<string, FakeUser>;
  /** Secrets of the clients it knows. */
  readonly clients: Map<string, string>;
  /** Who is logged in at the hub; undefined: nobody, and authorize answers with an error. */
  loggedIn: FakeUser | undefined;
  /** Where relative redirect URIs lead. */
  publicOrigin: string;
  /** Answers every API request with this status when set. */
  failure: number | undefined;
  /** Held back until this resolves. */
  gate: Promise<void>;
  /** Lookups of tokens so far. */
  lookups: number;
  /** With those that are held back. */
  lookupsBegun: number;
  readonly activity: { readonly path: string; readonly body: unknown }[];
  readonly authorizeRequests: URLSearchParams[];
}

/** Starts a fake hub on a free port. */
export async function startFakeHub(): Promise<FakeHub> {
  const codes = new Map<string, IssuedCode>();
  const server = createServer((request, response) => {
    void answer(request, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  const hub: FakeHub = {
    origin,
    apiUrl: `${origin}/hub/api`,
    users: new Map(),
    clients: new Map(),
    loggedIn: undefined,
    publicOrigin: origin,
    failure: undefined,
    gate: Promise.resolve(),
    lookups: 0,
    lookupsBegun: 0,
    activity: [],
    authorizeRequests: [],
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };

  async function answer(
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<ServerResponse> {
    const url = new URL(request.url ?? '/', origin);
    const body = await text(request);
    if (url.pathname === '/hub/api/user') hub.lookupsBegun += 1;
    await hub.gate;
    if (url.pathname === '/hub/api/oauth2/authorize') return authorize(url, response);
    if (hub.failure !== undefined) return json(response, hub.failure, { message: 'failing' });
    if (url.pathname === '/hub/api/user') return user(request, response);
    if (url.pathname === '/hub/api/oauth2/token') return token(new URLSearchParams(body), response);
    if (url.pathname.endsWith('/activity')) {
      hub.activity.push({ path: url.pathname, body: JSON.parse(body) as unknown });
      return json(response, 200, {});
    }
    return json(response, 404, { message: 'not found' });
  }

  function authorize(url: URL, response: ServerResponse): ServerResponse {
    const query = url.searchParams;
    hub.authorizeRequests.push(query);
    const back = new URL(query.get('redirect_uri') ?? '', hub.publicOrigin);
    back.searchParams.set('state', query.get('state') ?? '');
    back.searchParams.set('iss', origin);
    if (hub.loggedIn === undefined) {
      back.searchParams.set('error', 'access_denied');
    } else {
      const code = randomUUID();
      codes.set(code, {
        user: hub.loggedIn,
        redirectUri: query.get('redirect_uri') ?? '',
        codeChallenge: query.get('code_challenge') ?? '',
        clientId: query.get('client_id') ?? '',
      });
      back.searchParams.set('code', code);
    }
    return response.writeHead(302, { location: back.href }).end();
  }

  function token(form: URLSearchParams, response: ServerResponse): ServerResponse {
    const clientId = form.get('client_id') ?? '';
    if (hub.clients.get(clientId) !== form.get('client_secret')) {
      return json(response, 401, { error: 'invalid_client' });
    }
    const code = codes.get(form.get('code') ?? '');
    codes.delete(form.get('code') ?? '');
    const challenge = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url');
    if (
      code?.codeChallenge !== challenge ||
      code.redirectUri !== form.get('redirect_uri') ||
      code.clientId !== clientId
    ) {
      return json(response, 400, { error: 'invalid_grant' });
    }
    const accessToken = `hub_${randomUUID()}`;
    hub.users.set(accessToken, code.user);
    return json(response, 200, { access_token: accessToken, expires_in: 1000 });
  }

  function user(request: IncomingMessage, response: ServerResponse): ServerResponse {
    hub.lookups += 1;
    const found = hub.users.get(request.headers.authorization?.replace(/^token /, '') ?? '');
    if (found === undefined) return json(response, 403, { message: 'no user identified' });
    return json(response, 200, { kind: 'user', ...found });
  }

  return hub;
}

function json(response: ServerResponse, status: number, body: unknown): ServerResponse {
  return response
    .writeHead(status, { 'content-type': 'application/json' })
    .end(JSON.stringify(body));
}
