import type { IncomingHttpHeaders } from 'node:http';
import { HubError } from '../../platform/errors.ts';
import { hostnameOf } from '../../platform/http/request-address.ts';
import { text } from '../../platform/texts/text.ts';

/** The headers in which a proxy says what it asks about: X-Forwarded-… or X-Original-…. */
export type ClaimKind = 'forwarded' | 'original';

/** The request of a visitor that a proxy asks about, as one kind of header says. */
interface Claim {
  readonly method: string;
  /** In lower case; undefined where the proxy does not say. */
  readonly scheme: string | undefined;
  /** As the proxy has it, a port with it. */
  readonly host: string;
  /** As names are compared (`hostnameOf`). */
  readonly hostname: string;
  /** Path and query as they were sent. */
  readonly url: string;
}

/**
 * What else says what a request is about. A proxy passes those of its client on to the hub, and some to the app too,
 * which may believe them; so they have to say the same.
 */
const claims: ReadonlyMap<string, Exclude<keyof Claim, 'host'>> = new Map([
  ['x-forwarded-method', 'method'],
  ['x-forwarded-proto', 'scheme'],
  ['x-forwarded-host', 'hostname'],
  ['x-forwarded-uri', 'url'],
  ['x-original-method', 'method'],
  ['x-original-host', 'hostname'],
  ['x-original-uri', 'url'],
  ['x-rewrite-url', 'url'],
  ['x-method', 'method'],
  ['x-method-override', 'method'],
  ['x-http-method', 'method'],
  ['x-http-method-override', 'method'],
]);
const plainName = /^[a-z0-9-]+$/;
const reservedName = /^x-(?:hub|forwarded|original|rewrite|method|http-method)(?:-|$)/;
const schemeName = /^(?:https?|wss?)$/;
const originalUrl = /^(https?):\/\/([^/?#]*)(\/.*)$/i;

/**
 * Reads what a proxy asks about from one kind of header. Throws `bad_request` where it says too little, where any
 * other header says something else, and where one claims an identity, in whatever spelling an app could take for it.
 */
export function readClaim(headers: IncomingHttpHeaders, kind: ClaimKind): Claim {
  const claim = kind === 'forwarded' ? forwardedClaim(headers) : originalClaim(headers);
  for (const name of Object.keys(headers)) {
    if (name.charCodeAt(0) !== smallX) continue;
    if (isForged(name)) throw misleading();
    const value = headers[name]?.toString() ?? '';
    const part = claims.get(name);
    if (part !== undefined && claim[part] !== comparable(part, value)) throw contradicting();
    if (name === 'x-original-url' && !isSame(claim, value)) throw contradicting();
  }
  return claim;
}

const smallX = 'x'.charCodeAt(0);

/** CGI and its heirs, and PHP, read every character but letters and digits as an underscore. */
function isForged(name: string): boolean {
  if (plainName.test(name)) return name.startsWith('x-hub-');
  return reservedName.test(name.replaceAll(/[^a-z0-9]/g, '-'));
}

function comparable(part: Exclude<keyof Claim, 'host'>, value: string): string | undefined {
  if (part === 'hostname') return hostnameOf(value);
  return part === 'scheme' ? value.toLowerCase() : value;
}

function isSame({ scheme, hostname, url }: Claim, address: string): boolean {
  const [, ownScheme = '', host = '', path] = originalUrl.exec(address) ?? [];
  return ownScheme.toLowerCase() === scheme && hostnameOf(host) === hostname && path === url;
}

function forwardedClaim(headers: IncomingHttpHeaders): Claim {
  return checked({
    method: headers['x-forwarded-method'],
    scheme: headers['x-forwarded-proto'],
    host: headers['x-forwarded-host'],
    url: headers['x-forwarded-uri'],
  });
}

function originalClaim(headers: IncomingHttpHeaders): Claim {
  const address = headers['x-original-url']?.toString();
  const [, scheme, host, url] = (address === undefined ? null : originalUrl.exec(address)) ?? [];
  return checked({ method: headers['x-original-method'], scheme, host, url });
}

type Header = string | string[] | undefined;

function checked(claim: {
  readonly method: Header;
  readonly scheme: Header;
  readonly host: Header;
  readonly url: Header;
}): Claim {
  const { method, host, url } = claim;
  if (typeof method !== 'string' || typeof host !== 'string' || typeof url !== 'string') {
    throw incomplete();
  }
  const scheme = claim.scheme?.toString().toLowerCase();
  const hostname = hostnameOf(host);
  if (hostname === undefined || (scheme !== undefined && !schemeName.test(scheme))) {
    throw contradicting();
  }
  return { method, scheme, host, hostname, url };
}

function misleading(): HubError {
  return new HubError(
    'bad_request',
    text`The request has a header that an app could take for one of the hub.`,
    {
      hint: text`Leave out X-Hub-… headers, and write X-Forwarded-… and X-Original-… with hyphens only.`,
    },
  );
}

function incomplete(): HubError {
  return new HubError('bad_request', text`The proxy does not say which request it asks about.`, {
    hint: text`It has to send X-Forwarded-Method, X-Forwarded-Host and X-Forwarded-Uri; or X-Original-Method and X-Original-URL, and Proxy.forward_auth_headers has to say so.`,
  });
}

export function contradicting(): HubError {
  return new HubError('bad_request', text`The request says two things about what is asked for.`, {
    hint: text`A proxy must replace X-Forwarded-… headers, or X-Original-… ones, and a client sends neither.`,
  });
}
