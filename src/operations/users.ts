import { z } from 'zod';
import { type Accounts, maxNewUsers } from '../identity/accounts/accounts.ts';
import type { AuthStates } from '../identity/accounts/auth-states.ts';
import type { UserProfiles } from '../identity/accounts/user-profiles.ts';
import { listedUserNames, notReachable, userNamesFor } from '../identity/rbac/access-check.ts';
import type { Authorizer } from '../identity/rbac/authorizer.ts';
import type { UserStore } from '../identity/users/user-store.ts';
import { HubError } from '../platform/errors.ts';
import { JsonText } from '../platform/protocol/json-text.ts';
import { text } from '../platform/texts/text.ts';
import type { CachedPages } from './cached-pages.ts';
import { flag, freeData, userModel } from './models.ts';
import { type ModelOf, operation } from './operation.ts';
import { createMay } from './perform.ts';
import { presentUser, type UserDirectory, userReadScopes } from './user-model.ts';

export interface Deps {
  readonly users: Pick<UserStore, 'list' | 'getByName'>;
  readonly accounts: Accounts;
  readonly authStates: AuthStates;
  readonly userProfiles: Pick<UserProfiles, 'change'>;
  readonly authorizer: Pick<Authorizer, 'membershipFor'>;
  readonly userDirectory: UserDirectory;
  readonly userPages: CachedPages<ModelOf<typeof userModel>>;
  /** Lets the stores know of activity that was only noted so far. */
  readonly flushActivity: () => Promise<void>;
}

/** The API's names for an order, and the store's. */
const sorts = {
  name: 'name',
  '-name': '-name',
  id: 'created',
  '-id': '-created',
  last_activity: 'lastActivity',
  '-last_activity': '-lastActivity',
} as const;

const stoppedServers = {
  include_stopped_servers: flag
    .optional()
    .describe('Whether servers that do not run are told too.'),
};

const listQuery = z.object({
  sort: z
    .enum(Object.keys(sorts) as (keyof typeof sorts)[])
    .default('id')
    .describe('By which member; descending with a minus.'),
  state: z
    .enum(['active', 'ready', 'inactive'])
    .optional()
    .describe('Only users with a server that is active, ready, or with none.'),
  name_filter: z
    .string()
    .optional()
    .describe(
      'Part of the name; also of the display name or e-mail address of users for whom the caller holds `read:users:info`.',
    ),
  ...stoppedServers,
  include_user_options: flag
    .optional()
    .describe('Whether the `user_options` of the servers are told too.'),
});

const isAdmin = z.boolean().describe('Whether the user is an administrator.');

const authenticator = z
  .string()
  .optional()
  .describe(
    'The authenticator by which the users will come; `Authenticator.account_authenticator` by default.',
  );

const systemAccount = z
  .string()
  .describe(
    'What `{username}` stands for in `Spawner.system_user` and `home_dir`, and so whose files the servers have; decided by administrators only.',
  );

const infoChange = z
  .strictObject({
    display_name: z.string().nullable().optional(),
    email: z.string().nullable().optional().describe('Counts as verified from then on.'),
    avatar_url: z.string().nullable().optional().describe('An https:// URL.'),
  })
  .describe('Members left out stay as they are. 409 where a login provider tells it.');

const suspension = {
  byCommand: true,
  path: '/users/{name}/suspension',
  tag: 'users',
  scopes: ['admin:users'],
  needsRecentLogin: true,
  target: 'user',
} as const;

/** Users. */
export const userOperations = [
  operation({
    id: 'listUsers',
    method: 'GET',
    path: '/users',
    tag: 'users',
    summary: 'List users',
    scopes: ['list:users'],
    target: 'users',
    isPaged: true,
    query: listQuery,
    answers: { 200: { description: 'The users.', schema: z.array(userModel) } },
  }).handle(async ({ query, page, rows, caller, may }, deps: Deps) => {
    const { sort, state, name_filter: nameFilter } = query;
    const membership = await deps.authorizer.membershipFor(caller.scopes);
    // A culler must not take a server for idle that was used a moment ago.
    await deps.flushActivity();
    const read = async () => {
      const { items, total } = await deps.users.list({
        ...page,
        sort: sorts[sort],
        ...(state === undefined ? {} : { serverState: state }),
        ...(nameFilter === undefined
          ? {}
          : {
              nameFilter,
              // A match tells what is in it.
              searchesInfoOf: userNamesFor(caller.scopes, 'read:users:info', membership),
            }),
        ...(rows === 'all' ? {} : { onlyNames: listedUserNames(rows, membership) }),
      });
      const details = await deps.userDirectory.detailsOfAll(items, {
        withStoppedServers: query.include_stopped_servers ?? false,
        withUserOptions: query.include_user_options ?? false,
      });
      // A caller who may list a user may know the name.
      const models = details.map((entry) => presentUser(entry, may, ['read:users:name']));
      return { items: new JsonText(models), total };
    };
    const found = await deps.userPages.read(caller.scopes, { ...page, ...query }, read);
    return { status: 200, ...found };
  }),
  operation({
    id: 'createUsers',
    method: 'POST',
    path: '/users',
    audit: ['user.create'],
    tag: 'users',
    summary: 'Create users',
    scopes: ['admin:users'],
    needsRecentLogin: true,
    body: z.object({
      usernames: z.array(z.string()).min(1).max(maxNewUsers),
      admin: isAdmin.default(false),
      authenticator,
    }),
    answers: {
      201: { description: 'Those that did not exist before.', schema: z.array(userModel) },
    },
  }).handle(async ({ body, caller, may }, deps: Deps) => {
    const { usernames, admin, authenticator } = body;
    const options = { isAdmin: admin, authenticator };
    const { created } = await deps.accounts.create(caller, usernames, options);
    const details = await deps.userDirectory.detailsOfAll(created);
    return { status: 201, body: details.map((entry) => presentUser(entry, may)) };
  }),
  operation({
    id: 'getUser',
    method: 'GET',
    path: '/users/{name}',
    tag: 'users',
    summary: 'Read a user',
    scopes: userReadScopes,
    target: 'user',
    orForServer: 'read:servers',
    query: z.object(stoppedServers),
    answers: { 200: { description: 'What the caller may see.', schema: userModel } },
  }).handle(async ({ params, query, caller, may }, deps: Deps) => {
    await deps.flushActivity();
    const details = await deps.userDirectory.detailsOf(await deps.users.getByName(params.name), {
      withStoppedServers: query.include_stopped_servers ?? false,
    });
    const authState = may('admin:auth_state', { kind: 'user', name: params.name })
      ? await deps.authStates.read(caller, details.user)
      : undefined;
    const model = presentUser(details, may);
    // A right to a server that is not listed shows no more than none does.
    if (Object.keys(model).length === 0) throw notReachable();
    return {
      status: 200,
      body: authState === undefined ? model : { ...model, auth_state: authState },
    };
  }),
  operation({
    id: 'createUser',
    method: 'POST',
    path: '/users/{name}',
    audit: ['user.create'],
    tag: 'users',
    summary: 'Create a user',
    scopes: ['admin:users'],
    needsRecentLogin: true,
    body: z.object({ admin: isAdmin.default(false), authenticator }).prefault({}),
    answers: { 201: { description: 'The new user.', schema: userModel } },
  }).handle(async ({ params, body, caller, may }, deps: Deps) => {
    const options = { isAdmin: body.admin, authenticator: body.authenticator };
    const {
      created: [user],
    } = await deps.accounts.create(caller, [params.name], options);
    if (user === undefined) throw new HubError('conflict', text`This user exists already.`);
    const details = await deps.userDirectory.detailsOf(user);
    return { status: 201, body: presentUser(details, may) };
  }),
  operation({
    id: 'changeUser',
    method: 'PATCH',
    path: '/users/{name}',
    audit: ['user.change', 'user.rename', 'user_info.change', 'auth_state.change'],
    log: 'user changed',
    tag: 'users',
    summary: 'Change the name, the rights, the info or the system account of a user',
    scopes: ['admin:users'],
    needsRecentLogin: true,
    target: 'user',
    body: z.strictObject({
      name: z.string().optional(),
      admin: isAdmin.optional(),
      system_account: systemAccount.optional(),
      user_info: infoChange.optional(),
      auth_state: freeData
        .nullable()
        .optional()
        .describe('Replaces what the provider of the last login told.'),
    }),
    answers: { 200: { description: 'The changed user.', schema: userModel } },
  }).handle(async ({ params, body, caller }, deps: Deps) => {
    if (body.auth_state !== undefined) {
      const changed = await deps.users.getByName(params.name);
      await deps.authStates.replace(caller, changed, body.auth_state);
    }
    if (body.user_info !== undefined) {
      const { display_name: displayName, email, avatar_url: pictureUrl } = body.user_info;
      const change = { displayName, email, pictureUrl };
      await deps.userProfiles.change(caller, await deps.users.getByName(params.name), change);
    }
    const user = await deps.accounts.change(caller, params.name, {
      ...(body.name === undefined ? {} : { name: body.name }),
      ...(body.admin === undefined ? {} : { isAdmin: body.admin }),
      ...(body.system_account === undefined ? {} : { systemAccount: body.system_account }),
    });
    const details = await deps.userDirectory.detailsOf(user);
    const may = createMay(caller, await deps.authorizer.membershipFor(caller.scopes));
    // A right to the old name is none to the new one, which the caller chose.
    return {
      status: 200,
      body: presentUser(details, may, ['read:users:name']),
      logged: {
        ...(body.admin !== undefined && { isAdmin: body.admin }),
        ...(user.name !== params.name && { newName: user.name }),
      },
    };
  }),
  operation({
    ...suspension,
    id: 'suspendUser',
    method: 'PUT',
    audit: ['user.suspend', 'server.stop'],
    log: 'user suspended',
    summary: 'Suspend a user',
    description:
      'The servers of the user are stopped. Logins, tokens and shares stop working at once, and work again when the suspension ends.',
    answers: { 204: { description: 'The user is shut out.' } },
  }).handle(({ params, caller }, { accounts }: Pick<Deps, 'accounts'>) =>
    accounts.setSuspended(caller, params.name, true),
  ),
  operation({
    ...suspension,
    id: 'unsuspendUser',
    method: 'DELETE',
    audit: ['user.unsuspend'],
    log: 'user unsuspended',
    summary: 'End the suspension of a user',
    answers: { 204: { description: 'The user may log in; servers stay stopped.' } },
  }).handle(({ params, caller }, { accounts }: Pick<Deps, 'accounts'>) =>
    accounts.setSuspended(caller, params.name, false),
  ),
  operation({
    id: 'deleteUser',
    byCommand: true,
    method: 'DELETE',
    path: '/users/{name}',
    audit: ['user.delete', 'session.end', 'server.stop', 'logout'],
    log: 'user deleted',
    tag: 'users',
    summary: 'Delete a user, with servers, tokens and logins',
    scopes: ['delete:users'],
    needsRecentLogin: true,
    target: 'user',
    answers: { 204: { description: 'The user is gone.' } },
  }).handle(async ({ params, caller }, { accounts }: Pick<Deps, 'accounts'>) => {
    const { hasConfiguredRights } = await accounts.delete(caller, params.name);
    return { status: 204, logged: { hasConfiguredRights } };
  }),
];
