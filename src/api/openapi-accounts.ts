import {
  flag,
  listOf,
  names,
  type Operations,
  object,
  type QueryParameter,
  ref,
  text,
} from './openapi-operation.ts';

/** `offset` and `limit` of every list. */
const pageParameters: readonly QueryParameter[] = [
  {
    name: 'offset',
    description: 'How many to leave out.',
    schema: { type: 'integer', minimum: 0 },
  },
  {
    name: 'limit',
    description: 'How many at most; 200 is the most there is.',
    schema: { type: 'integer', minimum: 1, maximum: 200 },
  },
];

const stoppedServers: QueryParameter = {
  name: 'include_stopped_servers',
  description: 'Whether servers that do not run are told too.',
  schema: { enum: ['true', 'false'] },
};

const userScopes = [
  'read:users',
  'read:users:name',
  'read:users:groups',
  'read:users:activity',
  'read:roles:users',
  'read:servers',
];
const paged =
  'With `Accept: application/jupyterhub-pagination+json` the list comes as `items`, beside `_pagination` with `offset`, `limit`, `total` and `next`.';

const userOperations: Operations = {
  'GET /hub/api/users': {
    id: 'listUsers',
    tag: 'users',
    summary: 'List users',
    description: paged,
    scopes: ['list:users'],
    query: [
      ...pageParameters,
      {
        name: 'sort',
        description: 'By which member; descending with a minus.',
        schema: { enum: ['name', '-name', 'id', '-id', 'last_activity', '-last_activity'] },
      },
      {
        name: 'state',
        description: 'Only users with a server that is active, ready, or with none.',
        schema: { enum: ['active', 'ready', 'inactive'] },
      },
      { name: 'name_filter', description: 'Part of the name.', schema: text() },
      stoppedServers,
    ],
    responses: { 200: { description: 'The users.', schema: listOf(ref('User')) } },
  },
  'POST /hub/api/users': {
    id: 'createUsers',
    tag: 'users',
    summary: 'Create users',
    scopes: ['admin:users'],
    body: { schema: object({ usernames: names, 'admin?': flag() }) },
    responses: {
      201: { description: 'Those that did not exist before.', schema: listOf(ref('User')) },
    },
  },
  'GET /hub/api/users/{name}': {
    id: 'getUser',
    tag: 'users',
    summary: 'Read a user',
    scopes: userScopes,
    query: [stoppedServers],
    responses: { 200: { description: 'What the caller may see.', schema: ref('User') } },
  },
  'POST /hub/api/users/{name}': {
    id: 'createUser',
    tag: 'users',
    summary: 'Create a user',
    scopes: ['admin:users'],
    body: { schema: object({ 'admin?': flag() }), required: false },
    responses: { 201: { description: 'The new user.', schema: ref('User') } },
  },
  'PATCH /hub/api/users/{name}': {
    id: 'changeUser',
    tag: 'users',
    summary: 'Rename a user, or make one an administrator',
    scopes: ['admin:users'],
    body: { schema: object({ 'name?': text(), 'admin?': flag() }) },
    responses: { 200: { description: 'The changed user.', schema: ref('User') } },
  },
  'DELETE /hub/api/users/{name}': {
    id: 'deleteUser',
    tag: 'users',
    summary: 'Delete a user, with servers, tokens and logins',
    scopes: ['delete:users'],
    responses: { 204: { description: 'The user is gone.' } },
  },
  'POST /hub/api/users/{name}/activity': {
    id: 'reportActivity',
    tag: 'users',
    summary: 'Report activity of a user and their servers',
    scopes: ['users:activity'],
    body: {
      schema: object({
        'last_activity?': { type: 'string', format: 'date-time' },
        'servers?': {
          type: 'object',
          additionalProperties: object({ last_activity: { type: 'string', format: 'date-time' } }),
        },
      }),
    },
    responses: { 200: { description: 'Taken note of; it never moves backwards.' } },
  },
};

const groupOperations: Operations = {
  'GET /hub/api/groups': {
    id: 'listGroups',
    tag: 'groups',
    summary: 'List groups',
    description: paged,
    scopes: ['list:groups'],
    query: pageParameters,
    responses: { 200: { description: 'The groups.', schema: listOf(ref('Group')) } },
  },
  'POST /hub/api/groups': {
    id: 'createGroups',
    tag: 'groups',
    summary: 'Create groups',
    scopes: ['admin:groups'],
    body: { schema: object({ groups: names, 'users?': names }) },
    responses: { 201: { description: 'The new groups.', schema: listOf(ref('Group')) } },
  },
  'GET /hub/api/groups/{group}': {
    id: 'getGroup',
    tag: 'groups',
    summary: 'Read a group',
    scopes: ['read:groups', 'read:groups:name', 'read:roles:groups'],
    responses: { 200: { description: 'What the caller may see.', schema: ref('Group') } },
  },
  'POST /hub/api/groups/{group}': {
    id: 'createGroup',
    tag: 'groups',
    summary: 'Create a group',
    scopes: ['admin:groups'],
    body: { schema: object({ 'users?': names }), required: false },
    responses: { 201: { description: 'The new group.', schema: ref('Group') } },
  },
  'DELETE /hub/api/groups/{group}': {
    id: 'deleteGroup',
    tag: 'groups',
    summary: 'Delete a group',
    scopes: ['delete:groups'],
    responses: { 204: { description: 'The group is gone.' } },
  },
  'POST /hub/api/groups/{group}/users': {
    id: 'addGroupMembers',
    tag: 'groups',
    summary: 'Add members to a group',
    scopes: ['groups'],
    body: { schema: ref('Members') },
    responses: { 200: { description: 'The group.', schema: ref('Group') } },
  },
  'DELETE /hub/api/groups/{group}/users': {
    id: 'removeGroupMembers',
    tag: 'groups',
    summary: 'Remove members from a group',
    scopes: ['groups'],
    body: { schema: ref('Members') },
    responses: { 200: { description: 'The group.', schema: ref('Group') } },
  },
  'PUT /hub/api/groups/{group}/properties': {
    id: 'setGroupProperties',
    tag: 'groups',
    summary: 'Replace the properties of a group',
    scopes: ['groups'],
    body: { schema: { type: 'object', additionalProperties: true } },
    responses: { 200: { description: 'The group.', schema: ref('Group') } },
  },
};

/** Users and groups. */
export const accountOperations: Operations = {
  ...userOperations,
  ...groupOperations,
};
