import { listOf, names, type Operations, object, ref, text } from './openapi-operation.ts';

const serviceOperations: Operations = {
  'GET /hub/api/services': {
    id: 'listServices',
    tag: 'services',
    summary: 'List services',
    scopes: ['list:services'],
    responses: {
      200: {
        description: 'The services by name.',
        schema: { type: 'object', additionalProperties: ref('Service') },
      },
    },
  },
  'GET /hub/api/services/{service}': {
    id: 'getService',
    tag: 'services',
    summary: 'Read a service and how it is',
    scopes: ['read:services', 'read:services:name', 'read:roles:services'],
    responses: { 200: { description: 'What the caller may see.', schema: ref('Service') } },
  },
  'GET /hub/api/services/{service}/output': {
    id: 'getServiceOutput',
    tag: 'services',
    summary: 'Read the last lines a managed service wrote',
    scopes: ['admin:services'],
    responses: { 200: { description: 'Oldest first.', schema: object({ lines: names }) } },
  },
  'POST /hub/api/services/{service}/restart': {
    id: 'restartService',
    tag: 'services',
    summary: 'Restart a managed service',
    scopes: ['admin:services'],
    responses: { 202: { description: 'It is restarting.' } },
  },
};

const hubOperations: Operations = {
  'GET /hub/api/': {
    id: 'getVersion',
    tag: 'hub',
    summary: 'Read the version of the hub',
    responses: { 200: { description: 'The version.', schema: object({ version: text() }) } },
  },
  'POST /hub/api/shutdown': {
    id: 'shutDown',
    tag: 'hub',
    summary: 'Stop the hub as SIGTERM does',
    scopes: ['shutdown'],
    body: {
      schema: object({ servers: { type: 'boolean' }, proxy: { type: 'boolean' } }),
      required: false,
    },
    responses: { 202: { description: 'The hub is stopping.' } },
  },
  'GET /hub/api/info': {
    id: 'getInfo',
    tag: 'hub',
    summary: 'Read versions and the names of the plugins in use',
    scopes: ['read:hub'],
    responses: {
      200: {
        description: 'What the hub runs with.',
        schema: object({
          version: text(),
          node: text(),
          spawner: { type: 'object' },
          authenticator: { type: 'object' },
          authenticators: listOf({ type: 'object' }),
        }),
      },
    },
  },
  'GET /hub/api/user': {
    id: 'getIdentity',
    tag: 'hub',
    summary: 'Read who the owner of the token is, and what it may do now',
    description:
      'A token that is unknown, expired or revoked identifies nobody: the answer is 403.',
    scopes: [],
    responses: { 200: { description: 'The owner.', schema: ref('Identity') } },
  },
  'GET /hub/api/proxy': {
    id: 'getRoutes',
    tag: 'hub',
    summary: 'Read the proxy table',
    scopes: ['proxy'],
    responses: {
      200: {
        description: 'The routes by prefix.',
        schema: { type: 'object', additionalProperties: ref('Route') },
      },
    },
  },
  'GET /hub/api/assertion-keys': {
    id: 'getAssertionKeys',
    tag: 'hub',
    summary: 'Read the public keys that verify `X-Hub-Assertion`',
    responses: { 200: { description: 'The keys.', schema: ref('KeySet') } },
  },
  'GET /hub/api/openapi.json': {
    id: 'getOpenApi',
    tag: 'hub',
    summary: 'Read this description',
    responses: { 200: { description: 'OpenAPI 3.1.', schema: { type: 'object' } } },
  },
  'GET /hub/api/health': {
    id: 'getHealth',
    tag: 'hub',
    summary: 'Ask whether the hub answers',
    description: 'Also at `/hub/health`.',
    responses: { 200: { description: 'It does.', schema: object({ status: { const: 'ok' } }) } },
  },
  'GET /hub/api/metrics': {
    id: 'getMetrics',
    tag: 'hub',
    summary: 'Read the metrics',
    description:
      'Also at `/hub/metrics`. Open to everyone where `Hub.authenticate_prometheus` is false.',
    scopes: ['read:metrics'],
    responses: {
      200: {
        description: 'Prometheus text exposition.',
        schema: { type: 'string' },
        mediaType: 'text/plain',
      },
    },
  },
};

const form = 'application/x-www-form-urlencoded';
const clientCredentials = {
  'client_id?': text('With `client_secret`, in place of HTTP Basic.'),
  'client_secret?': text(),
};

const authorizationParameters = [
  ['response_type', 'Always `code`.', true],
  ['client_id', 'Of the service or server, such as `service-wiki`.', true],
  ['redirect_uri', 'Exactly as registered; the registered one when left out.', false],
  ['scope', 'Scopes separated by spaces; those of the client when left out.', false],
  ['state', 'Sent back as it is.', false],
  ['code_challenge', 'RFC 7636.', false],
  ['code_challenge_method', 'Always `S256`.', false],
] as const;

const oauthOperations: Operations = {
  'GET /hub/api/oauth2/authorize': {
    id: 'showAuthorization',
    tag: 'oauth',
    summary: 'Ask a person in a browser for authorization (RFC 6749 §4.1.1)',
    query: authorizationParameters.map(([name, description, required]) => ({
      name,
      description,
      required,
      schema: { type: 'string' },
    })),
    responses: {
      200: { description: 'The consent page.', schema: text(), mediaType: 'text/html' },
      302: { description: 'To the login, or to the redirect URI with `code`, `state` and `iss`.' },
    },
  },
  'POST /hub/api/oauth2/authorize': {
    id: 'decideAuthorization',
    tag: 'oauth',
    summary: 'Allow or deny, from the consent page',
    body: { mediaType: form, schema: { type: 'object' } },
    responses: { 302: { description: 'To the redirect URI.' } },
  },
  'POST /hub/api/oauth2/token': {
    id: 'exchangeCode',
    tag: 'oauth',
    summary: 'Exchange a code for an access token (RFC 6749 §4.1.3)',
    body: {
      mediaType: form,
      schema: object({
        grant_type: { const: 'authorization_code' },
        code: text(),
        'redirect_uri?': text(),
        'code_verifier?': text('RFC 7636.'),
        ...clientCredentials,
      }),
    },
    responses: {
      200: {
        description: 'The access token.',
        schema: object({
          access_token: text(),
          token_type: { const: 'Bearer' },
          expires_in: { type: 'integer' },
          scope: text(),
        }),
      },
      400: { description: 'Refused.', schema: ref('OAuthError') },
      401: { description: 'The client is not who it says.', schema: ref('OAuthError') },
    },
  },
  'POST /hub/api/oauth2/introspect': {
    id: 'introspectToken',
    tag: 'oauth',
    summary: 'Ask what a token is (RFC 7662)',
    body: {
      mediaType: form,
      schema: object({ token: text(), 'token_type_hint?': text(), ...clientCredentials }),
    },
    responses: {
      200: {
        description: 'Inactive too where the caller may not know.',
        schema: object({ active: { type: 'boolean' } }, { additionalProperties: true }),
      },
      401: { description: 'The client is not who it says.', schema: ref('OAuthError') },
    },
  },
  'POST /hub/api/oauth2/revoke': {
    id: 'revokeOAuthToken',
    tag: 'oauth',
    summary: 'Revoke a token of the client (RFC 7009)',
    body: {
      mediaType: form,
      schema: object({ token: text(), 'token_type_hint?': text(), ...clientCredentials }),
    },
    responses: {
      200: { description: 'It is revoked, or there was none.' },
      401: { description: 'The client is not who it says.', schema: ref('OAuthError') },
    },
  },
};

/** Services, the hub itself, and the OAuth 2 provider. */
export const otherOperations: Operations = {
  ...serviceOperations,
  ...hubOperations,
  ...oauthOperations,
};
