/**
 * Headers that upstreams take for the word of a proxy: who the user is, where the client sits, which
 * path was asked for. `proxy` alone becomes HTTP_PROXY in CGI programs.
 */
const proxyClaims = new RegExp(
  `^(?:${[
    'x-hub-.*',
    'x-auth-request-.*',
    'x-auth-(?:user|email|groups?|name|token-claims)',
    'x-authenticated-.*',
    // Who has one can log in with it where the hub believes the proxy that signed it.
    '.*-jwt-assertion',
    'x-authentik-jwt',
    'x-remote-.*',
    'x-webauth-.*',
    'x-original-.*',
    'x-rewrite-.*',
    'x-forwarded(?:-.*)?',
    '.*-(?:client|connecting|originating|proxyuser|real|remote|user)-?ip(?:v6)?',
    'x-envoy-(?:external-address|original-.*)',
    'x-scheme',
    'x-url-scheme',
    // RFC 9440 §2, and those from before it.
    '(?:.*-)?client-?cert(?:-.*)?',
    'x-(?:ssl|tls).*',
    'ssl-client.*',
    'shib-.*',
    'x-ms-token-.*',
    'remote-(?:user|groups?|email|name|addr|host)',
    'forwarded',
    'proxy(?:-.*)?',
    'impersonate-.*',
    // What would let a GET through that is counted as another method behind the gateway's checks.
    'x-(?:http-)?method(?:-override)?',
  ].join('|')})$`,
);

/**
 * Words that make a header one about who asks, as every authenticating proxy has its own:
 * `Cf-Access-Authenticated-User-Email`, `X-Goog-Iap-Jwt-Assertion`, `Tailscale-User-Login`. An app that
 * was moved here from behind one of them may still believe it.
 */
const identityClaims =
  /(?:^|-)(?:assertion|capabilities|claims?|consumer|credential|creds|email|eppn|groups?|identity|jwt|login|mail|oidc|principal|roles?|saml|spiffe|sso|subject|upn|user|userid|userinfo|username)(?:-|$)/;
/** What the program of the visitor is called says nothing about the visitor. */
const userAgents = /(?:^|-)user-agent(?:-|$)/;

/** CGI and its heirs turn every other character into an underscore, and so into a forged hyphen. */
const plainName = /^[a-z0-9-]+$/;

/** Whether a header, in lower case, is one that upstreams take for the word of a proxy. */
export function isProxyClaim(name: string): boolean {
  return !plainName.test(name) || proxyClaims.test(name);
}

/** Whether a header, in lower case, seems to say who asks. */
export function isIdentityClaim(name: string): boolean {
  return identityClaims.test(name) && !userAgents.test(name);
}

/**
 * Response headers with which one upstream would speak for every page of the origin, and what each
 * would do there. Upstreams share their origin with the hub, so none of these is passed on.
 */
export const originHeaders: ReadonlyMap<string, string> = new Map([
  ['accept-ch', 'asks browsers for client hints on every request to the origin'],
  ['alt-svc', 'moves the origin to another host or port (RFC 7838)'],
  ['clear-site-data', 'deletes the cookies and storage of the hub and of every other app'],
  ['critical-ch', 'makes browsers repeat requests with the client hints it names'],
  ['expect-ct', 'reports connections to the origin (RFC 9163)'],
  ['nel', 'reports every URL of the origin elsewhere, secrets in queries included, for a year'],
  ['origin-agent-cluster', 'decides for every later page of the origin how it is isolated'],
  ['public-key-pins', 'locks browsers out of the origin (RFC 7469)'],
  ['public-key-pins-report-only', 'reports connections to the origin (RFC 7469)'],
  ['report-to', 'names where the reports of the origin go'],
  ['reporting-endpoints', 'names where reports of pages go, their URLs included'],
  ['sec-session-registration', 'binds a session of the origin to a key of the browser'],
  ['secure-session-registration', 'binds a session of the origin to a key of the browser'],
  ['set-login', 'tells browsers who is logged in at the origin (FedCM)'],
  ['strict-transport-security', 'decides on TLS for the host and all below it (RFC 6797)'],
  ['use-as-dictionary', 'takes part in the compression of other paths (RFC 9842)'],
]);

/**
 * What commands a proxy or web server before the hub: to answer with a file or an address of its own in place of the
 * app's answer, to slow down, or to take the hub for ill. nginx, Apache, lighttpd, LiteSpeed, Perlbal, h2o, Envoy.
 */
const frontCommands =
  /^x-(?:accel-(?!buffering$)|(?:lighttpd-)?send-?(?:file|tempfile)|lighttpd-|litespeed-|reproxy-|envoy-)/;

/** Hop-by-hop headers (RFC 9110 §7.6.1), and those that speak for the whole origin. */
const droppedNames = new Set([
  ...originHeaders.keys(),
  'connection',
  'http2-settings',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authentication-info',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** Whether a header of an answer, in lower case, is not passed on to the client. */
export function isKeptFromClients(name: string): boolean {
  return droppedNames.has(name) || (name.startsWith('x-') && frontCommands.test(name));
}

/** Those of a request that the hub writes itself, or that frame the message (RFC 9110 §7.6.1, RFC 9112 §6). */
const ownOfRequests =
  /^(?:host|cookie|origin|referer|connection|keep-alive|te|trailer|transfer-encoding|upgrade|http2-settings|expect|content-length|content-encoding|x-request-id|sec-.*)$/;
/** The same of an answer, and those whose values are confined to the route. */
const ownOfAnswers =
  /^(?:content-length|content-encoding|content-location|location|set-cookie|service-worker-allowed|cross-origin-opener-policy|sec-.*|x-hub-.*|x-request-id)$/;
const editableName = /^[a-z][a-z0-9-]{0,63}$/;

/** Whether a configuration may set or remove a header of requests: it decides nothing about who asks. */
export function isEditableInRequests(given: string): boolean {
  const name = given.toLowerCase();
  const isOwn = ownOfRequests.test(name) || isProxyClaim(name) || isIdentityClaim(name);
  return editableName.test(name) && !isOwn;
}

/** Whether a configuration may set or remove a header of answers: it speaks for no other page of the origin. */
export function isEditableInAnswers(given: string): boolean {
  const name = given.toLowerCase();
  return editableName.test(name) && !ownOfAnswers.test(name) && !isKeptFromClients(name);
}
