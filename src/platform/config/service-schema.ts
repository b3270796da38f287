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
    .describe("Address of the service's web server. When set, the gateway routes to it."),
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
    .describe(
      'System user that runs a managed service. The hub must be allowed to switch accounts.',
    ),
  cwd: z.string().min(1).optional().describe('Working directory of a managed service.'),
  access: z
    .enum(['service', 'gateway', 'public'])
    .default('service')
    .describe('Who checks visitors: the service itself, the gateway on its behalf, or nobody.'),
  strip_prefix: z
    .boolean()
    .default(false)
    .describe(
      'Whether /services/<name> is stripped from paths, for an app that cannot be configured with a path prefix.',
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
      "Arbitrary data, returned by the API. Pages use five keys: `title`, `description`, `group` (the heading it is listed under), `icon` (an emoji, up to three letters, or the path of an image on the hub's origin, such as `/services/gallery/icon.png`) and `contact` (whom to ask when it is down). All but `icon` may be objects with a text per language.",
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
      'Additional redirect URIs. With more than one, each authorization request must name one. For a public client, those on http://127.0.0.1, http://[::1] or http://localhost match any port (RFC 8252).',
    ),
  oauth_public: z
    .boolean()
    .default(false)
    .describe(
      'Whether it is a public client: an app on a device or in a browser that cannot keep a secret. It must use PKCE.',
    ),
  oauth_grants: z
    .array(z.enum(['refresh', 'client_credentials', 'device', 'token_exchange']))
    .default([])
    .describe(
      'Grants beyond the authorization code. `refresh`: a refresh token with each access token, which then lasts an hour; both end with the login. `client_credentials`: one-hour tokens of its own, limited to what its roles allow. `device`: logs in devices and command lines, whose users enter a code on a page of the hub (RFC 8628). `token_exchange`: exchanges a token for a narrower one, which ends with the original (RFC 8693).',
    ),
  oauth_offline: z
    .boolean()
    .default(false)
    .describe(
      'Whether the client may request `offline_access`: a refresh token that outlives the login, until it is revoked or unused for 90 days.',
    ),
  oauth_require_push: z
    .boolean()
    .default(false)
    .describe(
      'Whether the client must push its authorization requests, so that browsers cannot tamper with them (RFC 9126).',
    ),
  oauth_jwks: z
    .strictObject({ keys: z.array(z.record(z.string(), z.unknown())).min(1).max(20) })
    .optional()
    .describe(
      "The client's public keys, as a JWK Set. It then authenticates at the token endpoint with signed assertions (`private_key_jwt`) instead of its secret. RSA keys need at least 2048 bits.",
    ),
  oauth_jwks_uri: httpUrl
    .optional()
    .describe(
      'URL of these keys, instead of `oauth_jwks`; fetched again when an unknown key is used.',
    ),
  oauth_logout_url: httpUrl
    .refine((url) => !url.includes('#'), 'must not have a fragment (#…)')
    .optional()
    .describe(
      'Back-channel logout URI: where the hub tells the client that an OpenID Connect login has ended, for whatever reason.',
    ),
  oauth_post_logout_uris: z
    .array(redirectUri)
    .default([])
    .describe(
      'Where the client may send browsers after logging their users out of the hub: paths or http(s) URLs.',
    ),
  oauth_client_allowed_scopes: z
    .array(z.string())
    .default([])
    .describe('Scopes the service may request from users, beyond identity and access to itself.'),
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
    .describe('Signing algorithm of ID tokens for this service.'),
  health_path: z
    .string()
    .startsWith('/')
    .optional()
    .describe('Path below the prefix that returns a status below 500 once the service is ready.'),
  timeout: seconds.default(30).describe('Seconds a service has to become ready after its start.'),
  stop_timeout: seconds.default(10).describe('Seconds between SIGTERM and SIGKILL.'),
  listens_elsewhere: z
    .boolean()
    .default(false)
    .describe(
      "Set when the process that listens on a managed service's port is not a child of its command, as with systemd-run. Otherwise no other program gets its visitors.",
    ),
  upstream_timeout: seconds
    .optional()
    .describe(
      'Seconds the service has to start its response; 0 for no limit. Proxy.upstream_timeout by default.',
    ),
});

export type ServiceOptions = z.output<typeof serviceSchema>;
