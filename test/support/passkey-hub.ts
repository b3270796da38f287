import type { BrowserAnswer, FakeBrowser } from './fake-browser.ts';
import { freePort } from './free-port.ts';
import { createPasswordHub } from './password-hub.ts';
import {
  createSoftwarePasskey,
  type SoftwarePasskey,
  type Tampering,
} from './software-authenticator.ts';
import type { TestHub, TestHubConfig } from './test-hub.ts';

/** A hub of passwords at `http://localhost:<port>/`, where browsers use passkeys without TLS. */
export async function createPasskeyHub(
  userNames: readonly string[],
  config: TestHubConfig = {},
): Promise<TestHub> {
  const port = await freePort();
  return createPasswordHub(userNames, {
    ...config,
    Hub: {
      bind_url: `http://127.0.0.1:${port}/`,
      public_url: `http://localhost:${port}/`,
      ...config.Hub,
    },
  });
}

/** What the hub asked a browser. */
export interface AskedQuestion {
  readonly publicKey: {
    readonly challenge: string;
    readonly rpId?: string;
    readonly rp?: { readonly id: string };
    readonly user?: { readonly id: string };
    readonly allowCredentials?: readonly { readonly id: string }[];
    readonly userVerification?: string;
  };
  readonly state: string;
}

/** The anti-forgery token of the forms of a page. */
export const csrfOf = (page: BrowserAnswer): string =>
  /name="_csrf" value="([^"]+)"/.exec(page.body)?.[1] ?? '';

/** What an answer to a question needs of the browser that asked. */
export interface Asking {
  readonly hub: Pick<TestHub, 'url'>;
  readonly browser: FakeBrowser;
  readonly csrf: string;
}

/** Opens a page of the hub, to send its forms. */
export async function openForm(
  hub: Pick<TestHub, 'url'>,
  browser: FakeBrowser,
  path: string,
): Promise<Asking> {
  return { hub, browser, csrf: csrfOf(await browser.request(`${hub.url}${path}`)) };
}

export function post(
  { hub, browser, csrf }: Asking,
  path: string,
  fields: Readonly<Record<string, string>>,
  headers: Readonly<Record<string, string>> = {},
): Promise<BrowserAnswer> {
  return browser.request(`${hub.url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
    body: new URLSearchParams({ _csrf: csrf, ...fields }).toString(),
  });
}

export async function ask(asking: Asking, purpose: string): Promise<AskedQuestion> {
  const answer = await post(asking, 'hub/passkey-question', { purpose });
  if (answer.status !== 200) throw new Error(`${purpose}: ${answer.status} ${answer.body}`);
  return JSON.parse(answer.body) as AskedQuestion;
}

export const originOf = (hub: Pick<TestHub, 'url'>): string => new URL(hub.url).origin;

/** The fields of a form with an answer. */
export const fieldsOf = ({ state }: AskedQuestion, response: string) => ({
  passkey_state: state,
  passkey_response: response,
});

/** The recovery codes that a page shows; none on others. */
export const recoveryCodesOn = ({ body }: Pick<BrowserAnswer, 'body'>): string[] =>
  [...body.matchAll(/<li>([a-z2-9]{4}(?:-[a-z2-9]{4}){3})<\/li>/g)].map(([, code = '']) => code);

/** A passkey, and the recovery codes that came with the first of a user. */
export interface AddedPasskey extends SoftwarePasskey {
  readonly recoveryCodes: readonly string[];
}

/** Adds a passkey to the account of a browser that is logged in. */
export async function addPasskey(
  hub: Pick<TestHub, 'url'>,
  browser: FakeBrowser,
  options: { readonly name?: string } & Tampering = {},
): Promise<AddedPasskey> {
  const { name = 'Laptop', ...tampering } = options;
  const asking = await openForm(hub, browser, 'hub/account');
  const question = await ask(asking, 'add');
  const passkey = createSoftwarePasskey(question.publicKey, {
    origin: originOf(hub),
    ...tampering,
  });
  const fields = { name, ...fieldsOf(question, passkey.creation) };
  const answer = await post(asking, 'hub/account/passkeys', fields);
  const recoveryCodes = recoveryCodesOn(answer);
  const isAdded = answer.status === 303 || (answer.status === 200 && recoveryCodes.length > 0);
  if (!isAdded) throw new Error(`not added: ${answer.status} ${answer.body}`);
  return { ...passkey, recoveryCodes };
}
