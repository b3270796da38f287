import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { BrowserAnswer, FakeBrowser } from './fake-browser.ts';
import { freePort } from './free-port.ts';

/** A real OpenID Connect provider in a process of its own. */
export interface OidcProvider extends AsyncDisposable {
  readonly issuer: string;
  /** Changes what the provider says of somebody, or takes the account away. */
  setAccount(
    name: string,
    account: { readonly isDisabled?: boolean; readonly claims?: Record<string, unknown> },
  ): Promise<void>;
  /** Makes every answer an error 500, or lets it work again. */
  setBroken(isBroken: boolean): Promise<void>;
  /** How often a path was requested. */
  requestsTo(path: string): Promise<number>;
  /** Ends the process at once. */
  stop(): Promise<void>;
}

export interface OidcProviderOptions {
  /** Public URL of the hub, whose callback is registered. */
  readonly hubUrl: string;
  readonly port?: number;
  readonly accessTokenSeconds?: number;
  /** Registers whoever asks, and knows no client beforehand. */
  readonly registration?: boolean;
  readonly client?: Readonly<Record<string, unknown>>;
}

export const providerClient = {
  client_id: 'the-hub',
  client_secret: 'a secret of the hub: 100% + &',
};

const script = join(import.meta.dirname, '../../fixtures/oidc-provider/oidc-provider.ts');

/** Starts the provider and waits until it listens. */
export async function startOidcProvider(options: OidcProviderOptions): Promise<OidcProvider> {
  const { hubUrl, port = await freePort(), registration = false } = options;
  const issuer = `http://127.0.0.1:${port}`;
  const clients = [
    {
      ...providerClient,
      redirect_uris: [`${hubUrl}hub/oauth_callback`],
      post_logout_redirect_uris: [`${hubUrl}hub/logout`],
      backchannel_logout_uri: `${hubUrl}hub/backchannel_logout`,
      backchannel_logout_session_required: true,
      grant_types: ['authorization_code', 'refresh_token'],
      ...options.client,
    },
  ];
  const child = spawn(process.execPath, [script, String(port)], {
    env: {
      PATH: process.env['PATH'],
      CLIENTS: JSON.stringify(registration ? [] : clients),
      REGISTRATION: registration ? '1' : '0',
      ACCESS_TOKEN_SECONDS: String(options.accessTokenSeconds ?? 3600),
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let errors = '';
  child.stderr.on('data', (chunk) => {
    errors += String(chunk);
  });
  const listening = once(createInterface({ input: child.stdout }), 'line');
  const ended = once(child, 'exit').then(() => {
    throw new Error(`the provider ended: ${errors.slice(0, 2000)}`);
  });
  ended.catch(() => {});
  await Promise.race([listening, ended]);

  const control = async (path: string, body?: unknown) => {
    const init = body === undefined ? {} : { method: 'PUT', body: JSON.stringify(body) };
    return (await fetch(`${issuer}/control/${path}`, init)).json() as Promise<
      Record<string, number>
    >;
  };
  async function stop(): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
  return {
    issuer,
    setAccount: async (name, account) => void (await control(`accounts/${name}`, account)),
    setBroken: async (isBroken) => void (await control(`broken/${isBroken ? 'yes' : 'no'}`)),
    requestsTo: async (path) => (await control('requests'))[path] ?? 0,
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

/** Logs in on the provider's pages and consents; returns the answer that leads back to the hub. */
export async function passProvider(
  browser: FakeBrowser,
  authorizeUrl: string,
  name: string,
): Promise<BrowserAnswer> {
  const atProvider = new URL(authorizeUrl).origin;
  let answer = await browser.request(authorizeUrl);
  for (let step = 0; step < 12; step += 1) {
    const { location } = answer.headers;
    if (location !== undefined) {
      const next = new URL(location, answer.url);
      if (next.origin !== atProvider) return answer;
      answer = await browser.request(next.href);
      continue;
    }
    const action = /<form[^>]*action="([^"]+)"[^>]*method="post"/.exec(answer.body)?.[1];
    const prompt = /name="prompt" value="([^"]+)"/.exec(answer.body)?.[1];
    if (action === undefined || prompt === undefined) {
      throw new Error(`the provider shows no form: ${answer.status} ${answer.body.slice(0, 1000)}`);
    }
    answer = await browser.request(new URL(action, answer.url).href, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({ prompt, login: name, password: 'any' }).toString(),
    });
  }
  throw new Error('the provider does not lead back');
}
