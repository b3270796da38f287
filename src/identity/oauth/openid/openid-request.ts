import type { Client } from '../clients/client.ts';
import type { SigningKeys } from '../keys/signing-keys.ts';
import { OAuthError } from '../oauth-error.ts';
import { parameterValue } from '../request-parameters.ts';
import { openidScope } from './claims.ts';

/** How a client wants its user to be asked. */
export const prompts = ['none', 'login', 'consent', 'select_account'] as const;
type Prompt = (typeof prompts)[number];

/** What an authorization request says beside that of OAuth (OpenID Connect Core 1.0 §3.1.2.1). */
export interface OpenidRequest {
  readonly prompts: ReadonlySet<Prompt>;
  /** Seconds since the user showed who they are, at most. */
  readonly maxAgeSeconds: number | undefined;
  /** Ids that the user must have: of the hint and of the claims. */
  readonly subjects: readonly string[];
  /** Names of single claims (§5.5). */
  readonly claims: readonly string[];
  /** Values of which the login must have one as its `acr` (§5.5.1.1); any where there are none. */
  readonly acrValues: readonly string[];
}

/** Each may come once. `display`, `acr_values` and `claims_locales` are voluntary, and passed over. */
export const openidParameters = ['prompt', 'max_age', 'id_token_hint', 'claims'];

/** Requests of other kinds (§6, §7.2.1), and how they are refused (§3.1.2.6). */
const unsupported = ['request', 'request_uri', 'registration'] as const;
const maxClaimsLength = 4096;

/**
 * Reads it; undefined for a request that is none of OpenID Connect. Throws `invalid_request`, also for a hint that is
 * no ID token of this hub for this client. One that has expired will do: it only names who is meant.
 */
export async function readOpenidRequest(
  parameters: URLSearchParams,
  client: Client,
  {
    signingKeys,
    issuer,
  }: { readonly signingKeys: Pick<SigningKeys, 'verify'>; readonly issuer: string },
): Promise<OpenidRequest | undefined> {
  if (parameterValue(parameters, 'scope')?.split(' ').includes(openidScope) !== true)
    return undefined;
  const refused = unsupported.find((name) => parameters.has(name));
  if (refused !== undefined) {
    throw new OAuthError(`${refused}_not_supported`, `The parameter ${refused} is not supported.`);
  }
  const claims = readClaims(parameterValue(parameters, 'claims'));
  const idTokenHint = parameterValue(parameters, 'id_token_hint');
  const hinted =
    idTokenHint === undefined ? undefined : await signingKeys.verify(idTokenHint, issuer);
  if (idTokenHint !== undefined && (hinted?.sub === undefined || hinted.aud !== client.clientId)) {
    throw new OAuthError('invalid_request', 'The id_token_hint is no ID token for this client.');
  }
  return {
    prompts: readPrompts(parameterValue(parameters, 'prompt')),
    maxAgeSeconds: readMaxAge(parameterValue(parameters, 'max_age')),
    subjects: [...(hinted?.sub === undefined ? [] : [hinted.sub]), ...valuesOf(claims, 'sub')],
    claims: claims.map(([name]) => name),
    acrValues: valuesOf(
      claims.filter(([, wish]) => wish?.essential === true),
      'acr',
    ),
  };
}

/** Path and query to come back to once the user has logged in or chosen an account: the same, without the question. */
export function answeredRequestUrl(url: string): string {
  const at = url.indexOf('?');
  const query = new URLSearchParams(url.slice(at + 1));
  const left = (query.get('prompt') ?? '').split(' ').filter((prompt) => prompt === 'consent');
  query.delete('max_age');
  query.delete('prompt');
  for (const prompt of left) query.set('prompt', prompt);
  return `${url.slice(0, at)}?${query}`;
}

function readPrompts(value = ''): ReadonlySet<Prompt> {
  const asked = value.split(' ').filter((each) => each !== '');
  const known = prompts.filter((prompt) => asked.includes(prompt));
  if (known.length !== new Set(asked).size || (known.includes('none') && known.length > 1)) {
    throw new OAuthError('invalid_request', 'The parameter prompt is malformed.');
  }
  return new Set(known);
}

function readMaxAge(value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  if (/^\d{1,9}$/.test(value)) return Number(value);
  throw new OAuthError('invalid_request', 'The parameter max_age is no number of seconds.');
}

interface ClaimWish {
  readonly essential?: unknown;
  readonly value?: unknown;
  readonly values?: unknown;
}

/** The members of `userinfo` and `id_token`: the hub tells the same in both. */
function readClaims(text: string | undefined): (readonly [string, ClaimWish | null])[] {
  if (text === undefined) return [];
  try {
    if (text.length > maxClaimsLength) throw new RangeError('too long');
    const { userinfo = {}, id_token = {} } = JSON.parse(text);
    return [userinfo, id_token].flatMap((wishes) => Object.entries<ClaimWish | null>(wishes ?? {}));
  } catch (error) {
    throw new OAuthError('invalid_request', 'The parameter claims is malformed.', { cause: error });
  }
}

function valuesOf(claims: ReturnType<typeof readClaims>, name: string): string[] {
  return claims
    .filter(([each]) => each === name)
    .flatMap(([, wish]) => [wish?.value ?? [], wish?.values ?? []].flat())
    .filter((value) => typeof value === 'string');
}
