import { flag, listOf, names, object, ref, type Schema, text, time } from './openapi-operation.ts';

const freeData: Schema = { type: 'object', additionalProperties: true };
const nullableText: Schema = { type: ['string', 'null'] };

/** What the API sends and takes, by name. Members that the caller may not see are left out. */
export const schemas: Readonly<Record<string, Schema>> = {
  Error: object({
    status: { type: 'integer' },
    code: text('A code that never changes its meaning; see the reference page on errors.'),
    message: text('What happened, in words fit for the person asking.'),
    'hint?': text('What can be done about it.'),
    'error_id?': text('Ties an unforeseen error to the log of the hub.'),
  }),

  OAuthError: object({
    error: text('A code of RFC 6749 §5.2 or RFC 6750 §3.1.'),
    'error_description?': text(),
  }),

  User: object({
    kind: { const: 'user' },
    name: text(),
    'admin?': flag('Whether the user is an administrator.'),
    'groups?': names,
    'roles?': names,
    'created?': time(),
    'last_activity?': time(),
    'server?': { ...nullableText, description: 'Path of the default server while it is ready.' },
    'pending?': { enum: ['spawn', 'stop', null] },
    'servers?': { type: 'object', additionalProperties: ref('Server') },
  }),

  Identity: object(
    {
      kind: { enum: ['user', 'service'] },
      name: text(),
      scopes: names,
      session_id: { ...nullableText, description: 'The login that the token hangs on.' },
      token_id: nullableText,
      'admin?': flag(),
      'groups?': names,
      'roles?': names,
    },
    {
      description:
        'The owner of the token, with what the token may do now. A user has the members of User, too.',
    },
  ),

  Server: object({
    name: text('Empty for the default server.'),
    display_name: nullableText,
    full_name: text('`<user>/<server>`.'),
    last_activity: time(),
    started: time(),
    pending: { enum: ['spawn', 'stop', null] },
    ready: flag(),
    stopped: flag(),
    url: text('Path of the server.'),
    full_url: text(),
    user_options: freeData,
    progress_url: text('Path of its progress as server-sent events.'),
    full_progress_url: text(),
    failure: {
      oneOf: [
        object({ message: text(), at: time(), output: names }),
        { type: 'null', description: 'The last start did not fail.' },
      ],
    },
    'state?': { ...freeData, description: 'Only with `admin:server_state`.' },
  }),

  Progress: object({
    progress: { type: 'number', minimum: 0, maximum: 100 },
    message: text(),
    'ready?': flag(),
    'failed?': flag(),
    'url?': text('Path of the server, when it is ready.'),
    'output?': names,
  }),

  Token: object({
    kind: { const: 'api_token' },
    id: text(),
    'user?': text(),
    'service?': text(),
    roles: names,
    scopes: { ...names, description: 'What the token may do now.' },
    note: text(),
    created: time(),
    last_activity: time(),
    expires_at: time(),
    session_id: nullableText,
    oauth_client: text('`hub` for tokens that were made by hand.'),
  }),

  NewToken: {
    allOf: [ref('Token'), object({ token: text('The token itself; shown this once.') })],
  },

  Session: object({
    id: text(),
    'authenticator?': text(),
    'created?': time(),
    'last_seen?': time(),
    'expires_at?': time(),
    'address?': nullableText,
    'user_agent?': nullableText,
    current: flag('Whether the request itself belongs to it.'),
  }),

  Lockout: object({
    kind: { enum: ['user', 'address'] },
    subject: text('The name of the user, or the address.'),
    failures: { type: 'integer' },
    last_failure: time(),
    locked_until: time(),
  }),

  Group: object({
    kind: { const: 'group' },
    name: text(),
    'users?': names,
    'properties?': freeData,
    'roles?': names,
  }),

  Service: object({
    kind: { const: 'service' },
    name: text(),
    'roles?': names,
    'admin?': flag(),
    'url?': nullableText,
    'prefix?': nullableText,
    'command?': names,
    'display?': flag(),
    'info?': freeData,
    'access?': { enum: ['service', 'gateway', 'public'] },
    'managed?': flag(),
    'pid?': { type: ['integer', 'null'] },
    'state?': nullableText,
    'ready?': flag(),
    'restarts?': { type: 'integer' },
    'started?': time(),
    'next_start?': time(),
    'last_error?': nullableText,
    'last_exit?': { oneOf: [freeData, { type: 'null' }] },
    'usage?': { oneOf: [freeData, { type: 'null' }] },
  }),

  Route: object({
    routespec: text(),
    target: text(),
    access: text(),
    ready: flag(),
    last_activity: time(),
    data: freeData,
  }),

  ServerOptions: object({
    'display_name?': text(),
    'user_options?': { ...freeData, description: 'As the options form of the spawner has them.' },
  }),

  Members: object({ users: names }),

  KeySet: object({ keys: listOf(freeData) }, { description: 'RFC 7517.' }),
};
