import { z } from 'zod';
import { deepestJson, isNestedTooDeep } from '../protocol/json-depth.ts';
import { text } from '../texts/text.ts';
import { command, environment, httpUrl, says, seconds, secretReference } from './common-schema.ts';
import { forwardingKeys } from './forwarding-schema.ts';
import { routeLimits } from './route-limits-schema.ts';
import { routeRules } from './route-rules-schema.ts';

/** Codes are sent nowhere else: RFC 6749 §3.1.2, and no scheme by which a browser would run what it is given. */
function isWebAddress(uri: string): boolean {
  return uri.startsWith('/') || /^https?:$/.test(URL.parse(uri)?.protocol ?? '');
}

const redirectUri = z
  .string()
  .refine(
    (uri) => isWebAddress(uri) && !uri.includes('#'),
    'is neither a path nor an http(s) URL, without a fragment (#…)',
  );

const namePattern = /^[A-Za-z0-9][A-Za-z0-9._~-]*$/;

/** One entry of `Hub.services`. */
export const serviceSchema = z.strictObject({
  name: z
    .string()
    .refine((name) => namePattern.test(name), says(text`Use only letters, digits and . _ ~ -`))
    .max(100)
    .meta({ pattern: namePattern.source })
    .describe('Name of the service; its pages are under /services/<name>/.'),
  admin: z.boolean().default(false).describe('Whether the service has administrative privileges.'),
  url: httpUrl
    .optional()
    .describe('Where the service runs its web server. When set, the gateway routes to it.'),
  api_token: secretReference
    .optional()
    .describe('Token of the service for the hub API; longer than 8 characters, unique.'),
  command: command
    .optional()
    .describe('Command the hub runs to start the service. Without it the service is external.'),
  environment: environment.optional().describe('Extra environment variables of a managed service.'),
  user: z
    .string()
    .min(1)
    .optional()
    .describe('System user that runs a managed service, for a hub that may switch accounts.'),
  cwd: z.string().min(1).optional().describe('Directory in which a managed service runs.'),
  access: z
    .enum(['service', 'gateway', 'public'])
    .default('service')
    .describe('Who checks visitors: the service itself, the gateway in its place, or no one.'),
  strip_prefix: z
    .boolean()
    .default(false)
    .describe(
      'Whether the service gets paths without /services/<name>, for an app that cannot be told its path.',
    ),
  ...forwardingKeys,
  rules: routeRules.default([]),
  limits: routeLimits.optional(),
  display: z.boolean().default(true).describe('Whether users see the service on their home page.'),
  info: z
    .record(z.string(), z.unknown())
    .refine((info) => !isNestedTooDeep(info), says(text`may be nested ${deepestJson} levels deep`))
    .default({})
    .describe(
      'Free data shown by the API. Pages use five of its keys: `title`, `description`, `group` (the heading it stands under), `icon` (an emoji, up to three letters, or the path of an image on the origin of the hub, such as `/services/gallery/icon.png`) and `contact` (whom to ask when it does not answer). All but `icon` may be objects with a text for each language.',
    ),
  oauth_client_id: z
    .string()
    .regex(/^(?!hub-)[\x21-\x7e]+$/, 'must be printable ASCII and not start with "hub-"')
    .optional()
    .describe('OAuth client id; service-<name> by default.'),
  oauth_redirect_uri: redirectUri
    .optional()
    .describe(
      'OAuth redirect URI, a path or an http(s) URL without fragment; /services/<name>/oauth_callback by default.',
    ),
  oauth_redirect_uris: z
    .array(redirectUri)
    .default([])
    .describe(
      'Further redirect URIs. With several, each authorization request has to name one. Those of a public client on http://127.0.0.1, http://[::1] or http://localhost stand for every port (RFC 8252).',
    ),
  oauth_public: z
    .boolean()
    .default(false)
    .describe(
      'Whether it is a public client: an app on a device or in a browser, which can keep no secret. It has to use PKCE.',
    ),
  oauth_grants: z
    .array(z.enum(['refresh', 'client_credentials', 'device', 'token_exchange']))
    .default([])
    .describe(
      'What the client may do beside a login by code. `refresh`: get a refresh token with each access token, which then lasts an hour; both end with the login. `client_credentials`: get tokens of its own, with what its roles allow or less, for an hour. `device`: log in devices and command lines, whose users type a code on a page of the hub (RFC 8628). `token_exchange`: get, for a token that it has, one for less, which ends with that one (RFC 8693).',
    ),
  oauth_offline: z
    .boolean()
    .default(false)
    .describe(
      'Whether the client may ask for `offline_access`: a refresh token that goes on after the user has logged out, until it is taken back or not used for 90 days.',
    ),
  oauth_require_push: z
    .boolean()
    .default(false)
    .describe(
      'Whether the client has to push its authorization requests, so that browsers can change nothing of them (RFC 9126).',
    ),
  oauth_jwks: z
    .strictObject({ keys: z.array(z.record(z.string(), z.unknown())).min(1).max(20) })
    .optional()
    .describe(
      'Public keys of the client, as a JWK Set: it authenticates at the token endpoint by assertions that it signs with one of them (`private_key_jwt`), and no longer by its secret. RSA keys have 2048 bits at least.',
    ),
  oauth_jwks_uri: httpUrl
    .optional()
    .describe('Where the hub gets these keys, in place of `oauth_jwks`; again for a new one.'),
  oauth_logout_url: httpUrl
    .refine((url) => !url.includes('#'), 'must not have a fragment (#…)')
    .optional()
    .describe(
      'Where the hub tells the client that a login which it knows by OpenID Connect has ended, whatever ended it: its back-channel logout URI.',
    ),
  oauth_post_logout_uris: z
    .array(redirectUri)
    .default([])
    .describe(
      'Where the client may send browsers once it has logged their users out at the hub, each a path or an http(s) URL.',
    ),
  oauth_client_allowed_scopes: z
    .array(z.string())
    .default([])
    .describe('Scopes the service may ask a user for, beside identity and access to itself.'),
  oauth_no_confirm: z
    .boolean()
    .optional()
    .describe(
      'Skip the consent page for this service. Unless set, the page is skipped where the gateway checks visitors ' +
        '(`"access": "gateway"`) and the service asks for no further scopes.',
    ),
  oauth_id_token_alg: z
    .enum(['RS256', 'ES256'])
    .default('RS256')
    .describe('What ID tokens for this service are signed with.'),
  health_path: z
    .string()
    .startsWith('/')
    .optional()
    .describe('Path below the prefix that answers below 500 when the service is ready.'),
  timeout: seconds.default(30).describe('Seconds a service has to become ready after its start.'),
  stop_timeout: seconds.default(10).describe('Seconds between SIGTERM and SIGKILL.'),
  listens_elsewhere: z
    .boolean()
    .default(false)
    .describe(
      "Whether a program that the command did not start listens on a managed service's port, as under systemd-run. Otherwise no other program gets its visitors.",
    ),
  upstream_timeout: seconds
    .optional()
    .describe(
      'Seconds the service has to begin its answer; 0 waits for ever. Proxy.upstream_timeout by default.',
    ),
});

export type ServiceOptions = z.output<typeof serviceSchema>;
