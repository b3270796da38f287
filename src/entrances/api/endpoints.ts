import { z } from 'zod';
import type { OperationDeclaration } from '../../operations/operation.ts';

const form = 'application/x-www-form-urlencoded';

const clientCredentials = {
  client_id: z.string().optional().describe('With `client_secret`, in place of HTTP Basic.'),
  client_secret: z.string().optional(),
};

const oauthError = z
  .object({ error: z.string(), error_description: z.string().optional() })
  .meta({ id: 'OAuthError', description: 'As RFC 6749 §5.2 has it.' });

const refused = { description: 'Refused.', schema: oauthError };
const unknownClient = { description: 'The client is not who it says.', schema: oauthError };
const refusedClient = {
  400: refused,
  401: unknownClient,
  429: { description: 'Too many requests from this address.', schema: oauthError },
};

const tokenForm = z.object({
  token: z.string(),
  token_type_hint: z.string().optional(),
  ...clientCredentials,
});

const partModel = z.object({
  ready: z.boolean(),
  problem: z.string().optional().describe('What is wrong, where something is.'),
});

const readiness = z
  .object({
    status: z.enum(['ready', 'not_ready']),
    checks: z
      .object({ database: partModel, store: partModel, listeners: partModel })
      .optional()
      .describe('For those who may read the metrics.'),
  })
  .meta({ id: 'Readiness', description: 'Whether the hub can do its work now.' });

/** What answers below `/hub/api` without being an operation of the API itself, by its name. */
export const endpoints = {
  health: {
    id: 'getHealth',
    method: 'GET',
    path: '/health',
    tag: 'hub',
    summary: 'Ask whether the hub answers',
    description: 'Also at `/hub/health`.',
    scopes: 'public',
    answers: {
      200: { description: 'It does.', schema: z.object({ status: z.literal('ok') }) },
    },
  },
  readiness: {
    id: 'getReadiness',
    method: 'GET',
    path: '/ready',
    tag: 'hub',
    summary: 'Ask whether the hub can do its work now',
    description:
      'Also at `/hub/ready`. Answers within two seconds. Who may read the metrics learns how each part is.',
    scopes: 'public',
    answers: {
      200: { description: 'It can.', schema: readiness },
      503: { description: 'The database, the store or a listener is missing.', schema: readiness },
    },
  },
  metrics: {
    id: 'getMetrics',
    method: 'GET',
    path: '/metrics',
    tag: 'hub',
    summary: 'Read the metrics',
    description:
      'Also at `/hub/metrics`. Open to everyone where `Hub.authenticate_prometheus` is false. As `application/openmetrics-text` for clients that prefer it.',
    scopes: ['read:metrics'],
    answers: {
      200: {
        description: 'Prometheus text exposition.',
        schema: z.string(),
        mediaType: 'text/plain',
      },
    },
  },
  showAuthorization: {
    id: 'showAuthorization',
    method: 'GET',
    path: '/oauth2/authorize',
    tag: 'oauth',
    summary: 'Ask a person in a browser for authorization (RFC 6749 §4.1.1)',
    description:
      'Logs the person in first, and goes on without a question where consent was given.',
    scopes: 'public',
    query: z.object({
      response_type: z.literal('code').optional(),
      client_id: z.string().describe('Of the service or server, such as `service-wiki`.'),
      redirect_uri: z
        .string()
        .optional()
        .describe('Exactly as registered; the registered one when left out.'),
      scope: z
        .string()
        .optional()
        .describe('Scopes separated by spaces; those of the client when left out.'),
      request_uri: z
        .string()
        .optional()
        .describe('In place of all but `client_id`: what the client has pushed (RFC 9126).'),
      state: z.string().optional().describe('Sent back as it is.'),
      prompt: z
        .string()
        .optional()
        .describe('`none`, or some of `login consent select_account` (OpenID Connect Core 1.0).'),
      max_age: z.string().optional().describe('Seconds since the user showed who they are.'),
      login_hint: z.string().optional().describe('User name to begin with.'),
      ui_locales: z.string().optional().describe('Languages of the pages, by preference.'),
      id_token_hint: z.string().optional().describe('An ID token of the user who is meant.'),
      claims: z.string().optional().describe('Single claims, as JSON.'),
      nonce: z.string().optional().describe('Repeated in the ID token (OpenID Connect Core 1.0).'),
      code_challenge: z.string().optional().describe('RFC 7636.'),
      code_challenge_method: z.literal('S256').optional(),
      resource: z
        .string()
        .optional()
        .describe(
          'URL of the service or server that alone the token is to be good for (RFC 8707).',
        ),
    }),
    answers: {
      200: { description: 'The consent page.', schema: z.string(), mediaType: 'text/html' },
      302: { description: 'To the login, or to the redirect URI with `code`, `state` and `iss`.' },
    },
  },
  decideAuthorization: {
    id: 'decideAuthorization',
    method: 'POST',
    path: '/oauth2/authorize',
    audit: ['oauth.authorize'],
    tag: 'oauth',
    summary: 'Allow or deny, from the consent page',
    description: 'For that page alone, whose form has a secret.',
    scopes: 'public',
    body: z.looseObject({}),
    bodyMediaType: form,
    answers: { 302: { description: 'To the redirect URI.' } },
  },
  keySet: {
    id: 'getKeySet',
    method: 'GET',
    path: '/oauth2/jwks',
    tag: 'oauth',
    summary: 'Read the public keys of ID tokens (RFC 7517)',
    description: 'A key stands here a day before it signs, and until its last token has ended.',
    scopes: 'public',
    answers: {
      200: {
        description: 'The set of keys.',
        schema: z.object({ keys: z.array(z.looseObject({ kid: z.string(), alg: z.string() })) }),
      },
    },
  },
  userInfo: {
    id: 'getUserInfo',
    method: 'GET',
    path: '/oauth2/userinfo',
    tag: 'oauth',
    summary: 'Read the claims about a user (OpenID Connect Core 1.0 §5.3)',
    description: 'With an access token that was granted the scope `openid`; also by POST.',
    scopes: 'public',
    answers: {
      200: {
        description: 'The claims that the user let the client have.',
        schema: z.looseObject({ sub: z.string().describe('The id of the user.') }),
      },
      400: refused,
      401: refused,
      403: refused,
    },
  },
  postUserInfo: {
    id: 'postUserInfo',
    method: 'POST',
    path: '/oauth2/userinfo',
    audit: { none: 'It changes nothing.' },
    tag: 'oauth',
    summary: 'Read the claims about a user, with the token in a form (RFC 6750 §2.2)',
    description: 'As by GET.',
    scopes: 'public',
    body: z.object({ access_token: z.string().optional() }),
    bodyMediaType: form,
    answers: {
      200: {
        description: 'The claims that the user let the client have.',
        schema: z.looseObject({ sub: z.string() }),
      },
      400: refused,
      401: refused,
      403: refused,
    },
  },
  token: {
    id: 'exchangeCode',
    method: 'POST',
    path: '/oauth2/token',
    audit: ['oauth.replay', 'token.create'],
    tag: 'oauth',
    summary: 'Get an access token (RFC 6749 §4.1.3, §4.4, §6, RFC 8628 §3.4, RFC 8693)',
    description:
      'For a code or a refresh token, each good for one use by the client that it was issued to; for a service itself; or, asked again and again, once the user has let a device in. A token is exchanged for one that is good for less and ends with it.',
    scopes: 'public',
    body: z.object({
      grant_type: z.enum([
        'authorization_code',
        'refresh_token',
        'client_credentials',
        'urn:ietf:params:oauth:grant-type:device_code',
        'urn:ietf:params:oauth:grant-type:token-exchange',
      ]),
      code: z.string().optional(),
      device_code: z.string().optional(),
      subject_token: z.string().optional().describe('To exchange (RFC 8693).'),
      subject_token_type: z.string().optional(),
      audience: z.string().optional().describe('Client id of what alone it is to be good for.'),
      refresh_token: z.string().optional(),
      redirect_uri: z.string().optional(),
      code_verifier: z.string().optional().describe('RFC 7636.'),
      resource: z
        .string()
        .optional()
        .describe('URL of what alone it is to be good for (RFC 8707).'),
      ...clientCredentials,
    }),
    bodyMediaType: form,
    answers: {
      200: {
        description: 'The access token.',
        schema: z.object({
          access_token: z.string(),
          token_type: z.literal('Bearer'),
          expires_in: z.int().describe('Seconds.'),
          scope: z.string(),
          id_token: z.string().optional().describe('With the scope `openid`.'),
          refresh_token: z.string().optional().describe('For clients with the grant `refresh`.'),
        }),
      },
      ...refusedClient,
    },
  },
  deviceAuthorization: {
    id: 'authorizeDevice',
    method: 'POST',
    path: '/oauth2/device_authorization',
    audit: { none: 'It changes nothing until its user decides.' },
    tag: 'oauth',
    summary: 'Begin the login of a device or command line (RFC 8628 §3.1)',
    description: 'The user types the code on the page that it names, and says there what it may.',
    scopes: 'public',
    body: z.object({ scope: z.string().optional(), ...clientCredentials }),
    bodyMediaType: form,
    answers: {
      200: {
        description: 'The codes.',
        schema: z.object({
          device_code: z.string(),
          user_code: z.string(),
          verification_uri: z.string(),
          verification_uri_complete: z.string(),
          expires_in: z.int().describe('Seconds.'),
          interval: z.int().describe('Seconds between two questions.'),
        }),
      },
      ...refusedClient,
    },
  },
  push: {
    id: 'pushAuthorization',
    method: 'POST',
    path: '/oauth2/par',
    audit: { none: 'It changes nothing until its user allows it.' },
    tag: 'oauth',
    summary: 'Send an authorization request beforehand (RFC 9126)',
    description:
      'With the parameters of the authorization endpoint. A browser is then sent there with `client_id` and `request_uri` alone.',
    scopes: 'public',
    body: z.looseObject({ ...clientCredentials }),
    bodyMediaType: form,
    answers: {
      201: {
        description: 'Good for one login.',
        schema: z.object({ request_uri: z.string(), expires_in: z.int().describe('Seconds.') }),
      },
      ...refusedClient,
    },
  },
  introspection: {
    id: 'introspectToken',
    method: 'POST',
    path: '/oauth2/introspect',
    audit: { none: 'It changes nothing.' },
    tag: 'oauth',
    summary: 'Ask what a token is (RFC 7662)',
    description: 'For clients, about tokens that lead to them.',
    scopes: 'public',
    body: tokenForm,
    bodyMediaType: form,
    answers: {
      200: {
        description: 'Inactive too where the caller may not know.',
        schema: z.looseObject({ active: z.boolean() }),
      },
      ...refusedClient,
      403: refused,
    },
  },
  revocation: {
    id: 'revokeOAuthToken',
    method: 'POST',
    path: '/oauth2/revoke',
    audit: ['token.revoke'],
    tag: 'oauth',
    summary: 'Revoke a token of the client (RFC 7009)',
    description: 'Answers alike for a token that is unknown.',
    scopes: 'public',
    body: tokenForm,
    bodyMediaType: form,
    answers: {
      200: { description: 'It is revoked, or there was none.' },
      ...refusedClient,
    },
  },
} as const satisfies Readonly<Record<string, OperationDeclaration>>;
