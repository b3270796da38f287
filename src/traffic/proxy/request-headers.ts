import { HubError } from '../../platform/errors.ts';
import type { ClientAddress } from '../../platform/http/request-address.ts';
import { isIdentityClaim, isProxyClaim } from '../../platform/protocol/forwarded-headers.ts';
import { withoutTokenParameter } from '../../platform/protocol/token-parameter.ts';
import { text } from '../../platform/texts/text.ts';
import { withEdits, withoutNames } from './header-edits.ts';
import { authenticatesItself, hopRequestHeaders, upstreamCookies } from './response-headers.ts';
import type { Route } from './route.ts';

/** Header names and values in turn, as in `IncomingMessage.rawHeaders`. */
export type HeaderPairs = readonly string[];

/** Everything the headers of a forwarded request are made from. */
export interface RequestHeaderSource {
  readonly rawHeaders: HeaderPairs;
  readonly route: Route;
  readonly client: Pick<ClientAddress, 'address' | 'protocol' | 'host' | 'certificate'>;
  /** In place of whatever the client sent as `X-Request-Id`. */
  readonly requestId: string;
  /** Identity headers and the like; added last, so nothing a client sends can stand beside them. */
  readonly headersToAdd: HeaderPairs;
  /** Of the trace, in place of those that the client sent. */
  readonly traceHeaders?: HeaderPairs | undefined;
  /** Whether `Authorization` and `?token=` held a hub token that the upstream must not see. */
  readonly stripAuthorization: boolean;
}

type Fate =
  | 'keep'
  | 'drop'
  | 'connection'
  | 'host'
  | 'origin'
  | 'cookie'
  | 'authorization'
  | 'referer'
  | 'trace';

const traceNames = new Set(['traceparent', 'tracestate']);

/** Common names, so that most headers need one lookup and no pattern. */
const fates = new Map<string, Fate>([
  ...[
    'accept',
    'accept-encoding',
    'accept-language',
    'cache-control',
    'content-type',
    'dnt',
    'if-modified-since',
    'if-none-match',
    'pragma',
    'priority',
    'range',
    'sec-ch-ua',
    'sec-ch-ua-mobile',
    'sec-ch-ua-platform',
    'sec-fetch-dest',
    'sec-fetch-mode',
    'sec-fetch-site',
    'sec-fetch-user',
    'upgrade-insecure-requests',
    'user-agent',
    'x-requested-with',
    'x-xsrftoken',
  ].map((name) => [name, 'keep'] as const),
  // RFC 9110 §7.6.1 and §10.1.1, RFC 9112 §6, RFC 7540 §3.2.1; the client's framing ends here, and its
  // request id is replaced.
  ...[
    'content-length',
    'expect',
    'http2-settings',
    'keep-alive',
    'te',
    'trailer',
    'transfer-encoding',
    'upgrade',
    'x-request-id',
  ].map((name) => [name, 'drop'] as const),
  ['authorization', 'authorization'],
  ['connection', 'connection'],
  ['cookie', 'cookie'],
  ['host', 'host'],
  ['origin', 'origin'],
  ['referer', 'referer'],
  ...Array.from(traceNames, (name) => [name, 'trace'] as const),
]);

/**
 * Their usual spellings: most names need one look into this map and no change of case.
 */
const spellings = new Map<string, { readonly name: string; readonly fate: Fate }>();
for (const [name, fate] of fates) {
  const capitalised = name.replaceAll(/\b[a-z]/g, (letter) => letter.toUpperCase());
  // The engine keeps one string for each name of a property.
  for (const spelling of Object.keys({ [name]: 0, [capitalised]: 0 })) {
    spellings.set(spelling, { name: spelling, fate });
  }
}

/**
 * Builds the headers a forwarded request carries. The length of the body is left to the caller, who
 * frames it again. Throws `bad_request` for a second Host header (RFC 9112 §3.2).
 */
export function upstreamRequestHeaders(source: RequestHeaderSource): string[] {
  const { route, traceHeaders } = source;
  const headers = route.isHop ? hopRequestHeaders(source) : appRequestHeaders(source);
  if (traceHeaders === undefined) return headers;
  const mayHoldThem = route.isHop || route.requestEdits !== undefined;
  const passed = mayHoldThem ? withoutNames(headers, traceNames) : headers;
  passed.push(...traceHeaders);
  return passed;
}

function appRequestHeaders(source: RequestHeaderSource): string[] {
  const { rawHeaders, route, client, headersToAdd, stripAuthorization, traceHeaders } = source;
  const pairs: string[] = [];
  let connectionOptions = '';
  let hasHost = false;
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const sentName = rawHeaders[index] ?? '';
    const value = rawHeaders[index + 1] ?? '';
    const known = spellings.get(sentName);
    const name = known?.name ?? sentName;
    switch (known?.fate ?? fateOf(name.toLowerCase(), route)) {
      case 'keep':
        pairs.push(name, value);
        break;
      case 'drop':
        break;
      case 'connection':
        connectionOptions += `,${value}`;
        break;
      case 'host':
        if (hasHost) throw new HubError('bad_request', text`The request has two Host headers.`);
        hasHost = true;
        pairs.push(name, route.asked?.host ?? value);
        break;
      case 'origin': {
        // An app that compares it with Host would take its own page for another site's.
        const isOwn = value === `${client.protocol}://${client.host}`;
        pairs.push(name, isOwn ? (route.asked?.origin ?? value) : value);
        break;
      }
      case 'cookie': {
        const cookies = upstreamCookies(value, route);
        if (cookies !== undefined) pairs.push(name, cookies);
        break;
      }
      case 'authorization':
        if (!stripAuthorization) pairs.push(name, value);
        break;
      case 'referer':
        pairs.push(name, stripAuthorization ? withoutTokenParameter(value) : value);
        break;
      case 'trace':
        if (traceHeaders === undefined) pairs.push(name, value);
        break;
    }
  }
  const passed = connectionOptions === '' ? pairs : withoutListed(pairs, connectionOptions);
  const headers = route.requestEdits ? withEdits(passed, route.requestEdits) : passed;
  addForwarded(headers, client);
  if (route.stripsPrefix) headers.push('X-Forwarded-Prefix', route.prefix.slice(0, -1));
  headers.push('X-Request-Id', source.requestId);
  if (route.limits?.client_certificate !== undefined && client.certificate !== undefined) {
    headers.push('Client-Cert', `:${client.certificate}:`);
  }
  for (const item of headersToAdd) headers.push(item);
  return headers;
}

/** The same headers as an object, for `node:http`; values of a repeated name stand in a list. */
export function toHeaderObject(pairs: HeaderPairs): Record<string, string | string[]> {
  // Without a prototype, a header called `constructor` is a name like any other.
  const headers: Record<string, string | string[]> = Object.create(null);
  for (let index = 0; index + 1 < pairs.length; index += 2) {
    const name = (pairs[index] ?? '').toLowerCase();
    const value = pairs[index + 1] ?? '';
    const former = headers[name];
    if (former === undefined) headers[name] = value;
    else if (typeof former === 'string') headers[name] = [former, value];
    else former.push(value);
  }
  return headers;
}

function fateOf(name: string, route: Route): Fate {
  const known = fates.get(name);
  if (known !== undefined) return known;
  if (route.identityNames.has(name)) return 'drop';
  if (isProxyClaim(name)) return 'drop';
  // An app that checks visitors itself may have credentials of its own in such headers.
  return authenticatesItself(route) || !isIdentityClaim(name) ? 'keep' : 'drop';
}

/** Removes what Connection lists (RFC 9110 §7.6.1). A client cannot withdraw Host. */
function withoutListed(pairs: string[], options: string): string[] {
  const listed = new Set<string>();
  for (const option of options.toLowerCase().split(',')) listed.add(option.trim());
  listed.delete('host');
  listed.delete('');
  listed.delete('close');
  listed.delete('keep-alive');
  return listed.size === 0 ? pairs : withoutNames(pairs, listed);
}

function addForwarded(headers: string[], client: RequestHeaderSource['client']): void {
  const { address, protocol, host } = client;
  headers.push('X-Forwarded-For', address, 'X-Forwarded-Proto', protocol);
  if (host === '') return;
  const port = /:(\d{1,5})$/.exec(host)?.[1] ?? (protocol === 'https' ? '443' : '80');
  headers.push('X-Forwarded-Host', host, 'X-Forwarded-Port', port);
}
