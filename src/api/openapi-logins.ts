import { listOf, names, type Operations, object, ref, text, time } from './openapi-operation.ts';

const tokenOperations: Operations = {
  'GET /hub/api/users/{name}/tokens': {
    id: 'listTokens',
    tag: 'tokens',
    summary: "List a user's tokens",
    scopes: ['read:tokens'],
    responses: {
      200: { description: 'The tokens.', schema: object({ api_tokens: listOf(ref('Token')) }) },
    },
  },
  'POST /hub/api/users/{name}/tokens': {
    id: 'createToken',
    tag: 'tokens',
    summary: 'Make a token for a user',
    description: 'Nobody can put more into a token than its owner may do, nor than they may do.',
    scopes: ['tokens'],
    body: {
      required: false,
      schema: object({
        'note?': text(),
        'expires_in?': { type: ['number', 'null'], description: 'Seconds.' },
        'scopes?': names,
        'roles?': { ...names, description: 'In place of `scopes`.' },
      }),
    },
    responses: { 201: { description: 'The token, this once.', schema: ref('NewToken') } },
  },
  'GET /hub/api/users/{name}/tokens/{id}': {
    id: 'getToken',
    tag: 'tokens',
    summary: 'Read what is known of a token',
    scopes: ['read:tokens'],
    responses: { 200: { description: 'The token, without its secret.', schema: ref('Token') } },
  },
  'DELETE /hub/api/users/{name}/tokens/{id}': {
    id: 'revokeToken',
    tag: 'tokens',
    summary: 'Revoke a token',
    description:
      "A token of an application takes the application's other tokens of the user along.",
    scopes: ['tokens'],
    responses: { 204: { description: 'It is revoked.' } },
  },
};

const sessionOperations: Operations = {
  'GET /hub/api/users/{name}/sessions': {
    id: 'listSessions',
    tag: 'sessions',
    summary: 'List where a user is logged in',
    scopes: ['read:tokens'],
    responses: {
      200: { description: 'The logins.', schema: object({ sessions: listOf(ref('Session')) }) },
    },
  },
  'DELETE /hub/api/users/{name}/sessions': {
    id: 'endSessions',
    tag: 'sessions',
    summary: 'End every login of a user',
    scopes: ['tokens'],
    responses: { 204: { description: 'They have ended, with the tokens that hung on them.' } },
  },
  'DELETE /hub/api/users/{name}/sessions/{id}': {
    id: 'endSession',
    tag: 'sessions',
    summary: 'End one login of a user',
    scopes: ['tokens'],
    responses: { 204: { description: 'It has ended, with the tokens that hung on it.' } },
  },
};

const invitationOperations: Operations = {
  'POST /hub/api/users/{name}/invitation': {
    id: 'createInvitation',
    tag: 'logins',
    summary: 'Make a one-time link with which a user chooses a password',
    description: 'An earlier link of the user stops working.',
    scopes: ['admin:users'],
    responses: {
      201: {
        description: 'The link, this once.',
        schema: object({ user: text(), purpose: text(), url: text(), expires_at: time() }),
      },
    },
  },
  'DELETE /hub/api/users/{name}/invitation': {
    id: 'revokeInvitation',
    tag: 'logins',
    summary: "Withdraw a user's link",
    scopes: ['admin:users'],
    responses: { 204: { description: 'It no longer works.' } },
  },
};

const lockoutOperations: Operations = {
  'GET /hub/api/lockouts': {
    id: 'listLockouts',
    tag: 'logins',
    summary: 'List who has to wait after failed logins',
    scopes: ['admin:users'],
    responses: {
      200: {
        description: 'Users and addresses.',
        schema: object({ lockouts: listOf(ref('Lockout')) }),
      },
    },
  },
  'DELETE /hub/api/lockouts': {
    id: 'liftLockout',
    tag: 'logins',
    summary: 'Forget the failed logins of a user or an address',
    scopes: ['admin:users'],
    query: [
      {
        name: 'kind',
        description: 'Of what.',
        required: true,
        schema: { enum: ['user', 'address'] },
      },
      { name: 'subject', description: 'The name or the address.', required: true, schema: text() },
    ],
    responses: { 204: { description: 'They are forgotten.' } },
  },
};

/** Tokens, logins of browsers, invitations and lock-outs. */
export const loginOperations: Operations = {
  ...tokenOperations,
  ...sessionOperations,
  ...invitationOperations,
  ...lockoutOperations,
};
