import { createHmac } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { type CryptoKey, exportJWK, exportSPKI, generateKeyPair, SignJWT } from 'jose';
import type { FakeBrowser } from './fake-browser.ts';
import { freePort } from './free-port.ts';

type Claims = Record<string, unknown>;
type Answer = (
  req: IncomingMessage,
  res: ServerResponse,
  body: URLSearchParams,
) => void | Promise<void>;

/** An OpenID Connect provider that answers as a test tells it to. */
export interface ScriptedProvider extends AsyncDisposable {
  readonly issuer: string;
  /** Replaces the answer of one endpoint; undefined brings the right one back. */
  script: { discovery?: Answer; token?: Answer; userinfo?: Answer; jwks?: Answer };
  /** Answers what is none of these endpoints. */
  fallback: Answer | undefined;
  /** Changes claims of the next ID tokens; a claim that is undefined is left out. */
  idClaims: Claims;
  /** Takes the place of the right ID token. */
  idToken: ((claims: Claims) => Promise<string> | string) | undefined;
  userinfo: Claims;
  /** Bodies that came to the token endpoint, the newest last. */
  readonly tokenRequests: URLSearchParams[];
  /** What the browser took along to the provider. */
  nonce: string;
  sign(claims: Claims, header?: Claims): Promise<string>;
  /** Signed as with a shared secret, which is the public key that everybody knows. */
  signWithPublicKey(claims: Claims): Promise<string>;
  /** Replaces the key that signs and the published one. */
  rotateKeys(): Promise<void>;
  /** Begins a login in the browser; returns where the provider would send it back. */
  begin(browser: FakeBrowser, hubUrl: string, next?: string): Promise<URL>;
  listen(): Promise<void>;
  close(): Promise<void>;
}

/** Starts the provider; with `isDown` it only knows where it will listen. */
export async function startScriptedProvider(
  options: {
    readonly isDown?: boolean;
    readonly metadata?: Claims;
    readonly registers?: boolean;
  } = {},
): Promise<ScriptedProvider> {
  const port = await freePort();
  const issuer = `http://127.0.0.1:${port}`;
  let keys = await makeKeys('key-1');
  let keyCount = 1;
  let server: Server | undefined;

  const metadata = {
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    userinfo_endpoint: `${issuer}/userinfo`,
    jwks_uri: `${issuer}/jwks`,
    authorization_response_iss_parameter_supported: true,
    id_token_signing_alg_values_supported: ['RS256', 'HS256', 'none'],
    ...(options.registers === true && { registration_endpoint: `${issuer}/register` }),
    ...options.metadata,
  };

  const provider: ScriptedProvider = {
    issuer,
    script: {},
    fallback: undefined,
    idClaims: {},
    idToken: undefined,
    userinfo: {},
    tokenRequests: [],
    nonce: '',

    sign: (claims, header = {}) =>
      new SignJWT(claims)
        .setProtectedHeader({ alg: 'RS256', kid: keys.kid, ...header })
        .sign(keys.privateKey),

    async signWithPublicKey(claims) {
      const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
      const signed = `${encode({ alg: 'HS256', kid: keys.kid })}.${encode(claims)}`;
      const secret = await exportSPKI(keys.publicKey);
      return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`;
    },

    async rotateKeys() {
      keyCount += 1;
      keys = await makeKeys(`key-${keyCount}`);
    },

    async begin(browser, hubUrl, next) {
      const query = next === undefined ? '' : `?next=${encodeURIComponent(next)}`;
      const begun = await browser.request(`${hubUrl}hub/login/with/oidc${query}`);
      const location = new URL(begun.headers.location ?? 'no-redirect:');
      provider.nonce = location.searchParams.get('nonce') ?? '';
      const back = new URL(location.searchParams.get('redirect_uri') ?? '');
      back.searchParams.set('code', 'a code of the provider');
      back.searchParams.set('state', location.searchParams.get('state') ?? '');
      back.searchParams.set('iss', issuer);
      return back;
    },

    async listen() {
      server = createServer((req, res) => {
        answer(req, res).catch(() => res.destroy());
      });
      await new Promise<void>((resolve) => server?.listen(port, '127.0.0.1', resolve));
    },

    async close() {
      server?.closeAllConnections();
      await new Promise((resolve) => (server === undefined ? resolve(0) : server.close(resolve)));
      server = undefined;
    },
    [Symbol.asyncDispose]: () => provider.close(),
  };

  function claimsNow(): Claims {
    const now = Math.floor(Date.now() / 1000);
    const claims = {
      iss: issuer,
      sub: 'subject-1',
      aud: 'the-hub',
      iat: now,
      exp: now + 300,
      nonce: provider.nonce,
      preferred_username: 'alice',
      ...provider.idClaims,
    };
    return Object.fromEntries(Object.entries(claims).filter(([, value]) => value !== undefined));
  }

  const right: Record<string, Answer> = {
    discovery: (_req, res) => sendJson(res, metadata),
    jwks: async (_req, res) => sendJson(res, { keys: [keys.publicJwk] }),
    userinfo: (_req, res) => sendJson(res, { sub: 'subject-1', ...provider.userinfo }),
    async token(_req, res, body) {
      provider.tokenRequests.push(body);
      const claims = claimsNow();
      sendJson(res, {
        access_token: 'an access token',
        token_type: 'Bearer',
        expires_in: 300,
        id_token: await (provider.idToken?.(claims) ?? provider.sign(claims)),
      });
    },
  };

  async function answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const { pathname } = new URL(req.url ?? '/', issuer);
    const name = pathname === '/.well-known/openid-configuration' ? 'discovery' : pathname.slice(1);
    const body = new URLSearchParams(await text(req));
    const scripted =
      provider.script[name as keyof ScriptedProvider['script']] ?? right[name] ?? provider.fallback;
    if (scripted === undefined) res.writeHead(404).end();
    else await scripted(req, res, body);
  }

  if (options.isDown !== true) await provider.listen();
  return provider;
}

/** Answers with JSON. */
export function sendJson(res: ServerResponse, value: unknown, status = 200): void {
  res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
}

async function makeKeys(kid: string) {
  const { privateKey, publicKey } = await generateKeyPair('RS256', { extractable: true });
  const publicJwk = { ...(await exportJWK(publicKey)), kid, use: 'sig', alg: 'RS256' };
  return { kid, privateKey: privateKey as CryptoKey, publicKey: publicKey as CryptoKey, publicJwk };
}
