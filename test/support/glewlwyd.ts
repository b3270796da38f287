import { spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { gunzipSync } from 'node:zlib';
import { freePort } from './free-port.ts';
import { pathOf, requires } from './requires.ts';

const schema = '/usr/share/doc/glewlwyd/database/init.sqlite3.sql.gz';

/** Whether Glewlwyd is installed; see requires. */
export function hasGlewlwyd(): boolean {
  return requires('glewlwyd');
}

/** Glewlwyd, an OpenID Connect provider in C, with a client and the user `dora`. */
export interface Glewlwyd extends AsyncDisposable {
  readonly issuer: string;
  readonly client: { readonly client_id: string; readonly client_secret: string };
  /** Logs the user in and consents, as its pages do; returns where the browser is sent. */
  pass(authorizeUrl: string): Promise<URL>;
}

/** Starts Glewlwyd on a database of its own and sets it up by its API. */
export async function startGlewlwyd(hubUrl: string): Promise<Glewlwyd> {
  const directory = await mkdtemp(join(tmpdir(), 'glewlwyd-'));
  const port = await freePort();
  const origin = `http://127.0.0.1:${port}`;
  const issuer = `${origin}/api/oidc`;
  const file = join(directory, 'glewlwyd.sqlite');
  const database = new DatabaseSync(file);
  database.exec(gunzipSync(await readFile(schema)).toString());
  database.close();
  await writeFile(join(directory, 'glewlwyd.conf'), configuration(port, origin, file));

  const child = spawn(pathOf('glewlwyd'), ['-c', join(directory, 'glewlwyd.conf')], {
    stdio: 'ignore',
  });
  const call = createCaller(`${origin}/api`);
  for (let isUp = false; !isUp; ) {
    if (child.exitCode !== null) throw new Error(`Glewlwyd ended with ${child.exitCode}`);
    isUp = await fetch(`${origin}/api/auth/`).then(
      () => true,
      () => false,
    );
  }
  const client = { client_id: 'the-hub', client_secret: 'the secret' };
  const admin = await call('POST', 'auth/', { username: 'admin', password: 'password' });
  await call('POST', 'mod/plugin/', oidcPlugin(issuer), admin);
  await call('POST', 'client/', oidcClient(client, hubUrl), admin);
  const dora = {
    username: 'dora',
    name: 'Dora',
    enabled: true,
    password: 'the password of dora',
    scope: ['openid'],
  };
  await call('POST', 'user/', dora, admin);

  return {
    issuer,
    client,
    async pass(authorizeUrl) {
      const session = await call('POST', 'auth/', { username: 'dora', password: dora.password });
      await call('PUT', `auth/grant/${client.client_id}/`, { scope: 'openid' }, session);
      const answer = await fetch(`${authorizeUrl}&g_continue`, {
        redirect: 'manual',
        headers: { cookie: session },
      });
      return new URL(answer.headers.get('location') ?? '', authorizeUrl);
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await once(child, 'exit');
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** Calls the API; returns the cookie of the session that a login makes. */
function createCaller(api: string) {
  return async (method: string, path: string, body: object, cookie = ''): Promise<string> => {
    const answer = await fetch(`${api}/${path}`, {
      method,
      headers: { 'content-type': 'application/json', cookie },
      body: JSON.stringify(body),
    });
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
    return answer.headers.get('set-cookie')?.split(';', 1)[0] ?? cookie;
  };
}

function configuration(port: number, origin: string, file: string): string {
  return `port=${port}
bind_address="127.0.0.1"
external_url="${origin}"
login_url="login.html"
api_prefix="api"
log_mode="console"
log_level="ERROR"
cookie_secure=0
session_expiration=3600
session_key="GLEWLWYD2_SESSION_ID"
admin_session_authentication="cookie"
profile_session_authentication="cookie"
admin_scope="g_admin"
profile_scope="g_profile"
user_module_path="/usr/lib/glewlwyd/user"
client_module_path="/usr/lib/glewlwyd/client"
user_auth_scheme_module_path="/usr/lib/glewlwyd/scheme"
plugin_module_path="/usr/lib/glewlwyd/plugin"
database = { type = "sqlite3"; path = "${file}"; };
`;
}

function oidcPlugin(issuer: string): object {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
  return {
    module: 'oidc',
    name: 'oidc',
    display_name: 'OpenID Connect',
    order_rank: 0,
    parameters: {
      iss: issuer,
      'jwt-type': 'rsa',
      'jwt-key-size': '256',
      key: privateKey,
      cert: publicKey,
      'access-token-duration': 3600,
      'refresh-token-duration': 86_400,
      'code-duration': 600,
      'refresh-token-rolling': true,
      'allow-non-oidc': false,
      'auth-type-code-enabled': true,
      'auth-type-refresh-enabled': true,
      'pkce-allowed': true,
      'name-claim': 'no',
      'email-claim': 'no',
      'subject-type': 'public',
      'session-cookie-name': 'GLEWLWYD_OIDC',
      'session-cookie-expiration': 3600,
      'jwks-show': true,
      claims: [
        {
          name: 'preferred_username',
          'user-property': 'username',
          type: 'string',
          mandatory: true,
          'on-demand': false,
          scope: [],
        },
      ],
    },
  };
}

function oidcClient(client: Glewlwyd['client'], hubUrl: string): object {
  return {
    client_id: client.client_id,
    name: 'The hub',
    enabled: true,
    confidential: true,
    client_secret: client.client_secret,
    password: client.client_secret,
    redirect_uri: [`${hubUrl}hub/oauth_callback`],
    authorization_type: ['code', 'refresh_token'],
    token_endpoint_auth_method: ['client_secret_basic', 'client_secret_post'],
    scope: ['openid'],
  };
}
