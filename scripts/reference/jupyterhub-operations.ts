/** One operation of JupyterHub, as its versions 5 and 6 have it, and what is known of it here. */
export interface JupyterHubOperation {
  readonly method: string;
  /** Below `/hub/api`, with the names of parameters that are used here. */
  readonly path: string;
  /** Any of these admits; none for what needs no scope. */
  readonly scopes: readonly string[];
  /** Statuses of success. */
  readonly statuses: readonly number[];
  /** File below `test/` and title of a test, or part of it. */
  readonly test: readonly [file: string, title: string];
  /** The first major version that has it, where not every one has. */
  readonly since?: 5 | 6;
  /** In its code, and not in its published description. */
  readonly isUnpublished?: true;
  /** How it differs here, and why; without it, it is the same. */
  readonly difference?: string;
}

type Rest = Pick<JupyterHubOperation, 'since' | 'isUnpublished' | 'difference'>;

function row(
  request: string,
  scopes: string,
  statuses: readonly number[],
  test: JupyterHubOperation['test'],
  rest: Rest = {},
): JupyterHubOperation {
  const [method = '', path = ''] = request.split(' ');
  return { method, path, scopes: scopes.split(' ').filter(Boolean), statuses, test, ...rest };
}

const api = (title: string) => ['hub/jupyterhub-api.test.ts', title] as const;
const servers = (title: string) => ['hub/servers-api.test.ts', title] as const;
const sharing = (title: string) => ['hub/sharing-api.test.ts', title] as const;
const services = (title: string) => ['hub/runtime-services.test.ts', title] as const;
const everyCaller = ['attacks/authorisation-matrix.test.ts', 'refuses all who may not'] as const;
const oauth = (title: string) => ['protocol/rfc6749.test.ts', title] as const;

const gone = (use: string): Rest => ({ difference: `410: it takes a secret in the path. ${use}` });
const withServer = 'The answer has the server; JupyterHub’s is empty.';
const serverNames = 'Names are 1 to 30 of `a-z`, `0-9` and single hyphens, as in JupyterHub 6.';
const strict = 'A misspelt member is 400, for it would change something else.';
const readsUser =
  'read:users read:users:name read:servers read:users:groups read:users:activity read:roles:users';

/** Every operation of JupyterHub's REST API. */
export const jupyterHubOperations: readonly JupyterHubOperation[] = [
  row('GET /', '', [200], api('the version is told'), {
    difference: 'Adds `hub_version`; `version` is that of the interface.',
  }),
  row('GET /info', 'read:hub', [200], api('says to be different'), {
    difference: 'Names `node` and all authenticators; there is no Python.',
  }),
  row('GET /health', '', [200], ['hub/openapi.test.ts', 'are what the app answers'], {
    isUnpublished: true,
    difference: 'The answer has a body, `{"status": "ok"}`.',
  }),
  row('GET /metrics', 'read:metrics', [200], ['hub/metrics.test.ts', 'each documented metric'], {
    isUnpublished: true,
    difference: 'Other [metrics](metrics.md): the hub is another program.',
  }),
  row('POST /shutdown', 'shutdown', [202], everyCaller, { difference: strict }),
  row('GET /proxy', 'proxy', [200], api('names the owners of routes as JupyterHub does')),
  row('POST /proxy', 'proxy', [200], api('answers without a body once the table is right')),
  row('PATCH /proxy', 'proxy', [200], api('say so, and what to use instead'), {
    difference: '409: the proxy is part of the hub, and cannot be another one.',
  }),
  row(
    'GET /authorizations/token/{token}',
    '',
    [200],
    api('say so, and what to use instead'),
    gone('Send the token to `GET /user`.'),
  ),
  row('POST /authorizations/token', '', [200], api('say so, and what to use instead'), {
    difference: '410, as JupyterHub has removed it: use `auth` in `POST /users/{name}/tokens`.',
  }),
  row(
    'GET /authorizations/cookie/{cookie}/{value}',
    '',
    [200],
    api('say so, and what to use instead'),
    gone('Services log users in by OAuth.'),
  ),

  row('GET /user', '', [200], api('shows a service what it is')),
  row('GET /users', 'list:users', [200], api('of users come in the order of their creation'), {
    difference:
      'A negative `offset` or `limit` is 400, not taken as positive. `user_options` of servers only with `include_user_options`; `GET /users/{name}` has them.',
  }),
  row('POST /users', 'admin:users', [201], ['hub/user-names.test.ts', 'one bad name, and none']),
  row('GET /users/{name}', readsUser, [200], ['hub/models-by-scope.test.ts', 'a user']),
  row('POST /users/{name}', 'admin:users', [201], everyCaller),
  row('PATCH /users/{name}', 'admin:users', [200], api('says to be different'), {
    difference: 'A name that is taken is 409, not 400.',
  }),
  row(
    'DELETE /users/{name}',
    'delete:users',
    [204],
    servers('a user is deleted together with the servers'),
    { difference: 'Named servers that run are stopped, too.' },
  ),
  row(
    'POST /users/{name}/activity',
    'users:activity',
    [200],
    api('activity of the default server before its first start'),
  ),
  row('GET /users/{name}/tokens', 'read:tokens', [200], everyCaller),
  row(
    'POST /users/{name}/tokens',
    'tokens',
    [201],
    ['attacks/password-callers.test.ts', 'a name and a password make a token'],
    {
      difference:
        'A token beyond its creator is 403. `auth` with a name and password counts as a login, and is refused for an account with a second factor. Misspelt `expires_in`, `scopes` and `roles` are 400.',
    },
  ),
  row('GET /users/{name}/tokens/{id}', 'read:tokens', [200], everyCaller),
  row('DELETE /users/{name}/tokens/{id}', 'tokens', [204], everyCaller),
  row('POST /users/{name}/admin-access', 'servers', [200], api('that do nothing are not there'), {
    isUnpublished: true,
    difference: 'It does nothing in JupyterHub either.',
  }),

  row('GET /users/{name}/server', 'read:servers', [200], api('is one of the servers too'), {
    since: 6,
    isUnpublished: true,
  }),
  row('POST /users/{name}/server', 'start:servers', [201, 202], api('says to be different'), {
    difference: withServer,
  }),
  row('DELETE /users/{name}/server', 'delete:servers', [202, 204], api('stopping what never ran')),
  row(
    'GET /users/{name}/server/progress',
    'read:servers',
    [200],
    servers('followed by events, and can be cancelled'),
    { isUnpublished: true },
  ),
  row('GET /users/{name}/servers/{server}', 'read:servers', [200], servers('are made, changed'), {
    since: 6,
  }),
  row('PUT /users/{name}/servers/{server}', 'start:servers', [201], servers('are made, changed'), {
    since: 6,
  }),
  row(
    'POST /users/{name}/servers/{server}',
    'start:servers',
    [201, 202],
    api('says to be different'),
    {
      difference: `${withServer} ${serverNames}`,
    },
  ),
  row('PATCH /users/{name}/servers/{server}', 'start:servers', [200], api('is renamed while'), {
    since: 6,
  }),
  row(
    'DELETE /users/{name}/servers/{server}',
    'delete:servers',
    [202, 204],
    api('named servers while they are off'),
  ),
  row(
    'GET /users/{name}/servers/{server}/progress',
    'read:servers',
    [200],
    api('following a server that is stopped'),
    { isUnpublished: true },
  ),

  row('GET /shares/{name}', 'read:shares', [200], sharing('come in pages'), { since: 5 }),
  row('GET /shares/{name}/{server}', 'read:shares', [200], sharing('come in pages'), { since: 5 }),
  row('POST /shares/{name}/{server}', 'shares', [200], sharing('shows the share as JupyterHub'), {
    since: 5,
    difference: 'A default server that was never started can be shared; JupyterHub answers 404.',
  }),
  row('PATCH /shares/{name}/{server}', 'shares', [200], sharing('ending'), { since: 5 }),
  row('DELETE /shares/{name}/{server}', 'shares', [204], sharing('ending'), { since: 5 }),
  row('GET /share-codes/{name}', 'read:shares', [200], sharing('lists'), { since: 5 }),
  row('GET /share-codes/{name}/{server}', 'read:shares', [200], sharing('lists'), { since: 5 }),
  row('POST /share-codes/{name}/{server}', 'shares', [200], sharing('need no body'), { since: 5 }),
  row('DELETE /share-codes/{name}/{server}', 'shares', [204], sharing('are not deleted by way'), {
    since: 5,
  }),
  row('GET /users/{name}/shared', 'read:users:shares', [200], sharing('what groups share too'), {
    since: 5,
  }),
  row(
    'GET /users/{name}/shared/{owner}/{server}',
    'read:users:shares',
    [200],
    sharing('what is shared with someone'),
    { since: 5 },
  ),
  row(
    'DELETE /users/{name}/shared/{owner}/{server}',
    'users:shares',
    [204],
    sharing('is not left for the whole group'),
    { since: 5 },
  ),
  row('GET /groups/{group}/shared', 'read:groups:shares', [200], sharing('of a group its own'), {
    since: 5,
  }),
  row(
    'GET /groups/{group}/shared/{owner}/{server}',
    'read:groups:shares',
    [200],
    sharing('what is shared with someone'),
    { since: 5 },
  ),
  row(
    'DELETE /groups/{group}/shared/{owner}/{server}',
    'groups:shares',
    [204],
    sharing('what is shared with someone'),
    { since: 5 },
  ),

  row('GET /groups', 'list:groups', [200], api('are not listed by a right')),
  row('POST /groups', 'admin:groups', [201], api('one that exists keeps the others')),
  row(
    'GET /groups/{group}',
    'read:groups read:groups:name read:roles:groups',
    [200],
    api('keep their properties and members'),
  ),
  row('POST /groups/{group}', 'admin:groups', [201], api('an unknown member leaves no group')),
  row('DELETE /groups/{group}', 'delete:groups', [204], everyCaller),
  row('POST /groups/{group}/users', 'groups', [200], everyCaller),
  row('DELETE /groups/{group}/users', 'groups', [200], api('keep their properties and members')),
  row('PUT /groups/{group}/properties', 'groups', [200], api('keep their properties and members')),

  row('GET /services', 'list:services', [200], ['hub/models-by-scope.test.ts', 'a service shows']),
  row(
    'GET /services/{service}',
    'read:services read:services:name read:roles:services',
    [200],
    ['hub/models-by-scope.test.ts', 'a service shows'],
  ),
  row('POST /services/{service}', 'admin:services', [201], services('a service is added'), {
    since: 5,
    isUnpublished: true,
    difference:
      'Makes a token where none is given, and routes at once. A token, client id or name in use is 409; `url` needs `access:servers` and `access:services`.',
  }),
  row('DELETE /services/{service}', 'admin:services', [200], services('a service is added'), {
    since: 5,
    isUnpublished: true,
  }),

  row('GET /oauth2/authorize', '', [200, 302], ['protocol/rfc9207.test.ts', 'iss'], {
    difference: 'The redirect says `iss` (RFC 9207); of PKCE only S256 is taken.',
  }),
  row('POST /oauth2/authorize', '', [302], ['hub/specification-oauth.test.ts', 'consent']),
  row('POST /oauth2/token', '', [200], oauth('MUST support HTTP Basic')),
];
