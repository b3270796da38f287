import { z } from 'zod';
import type { Accounts } from '../identity/accounts/accounts.ts';
import type { ActingOnUsers } from '../identity/accounts/acting-on-users.ts';
import type { SetUpLink } from '../identity/accounts/set-up-link.ts';
import type { AccountBinding } from '../identity/authentication/account-binding.ts';
import type { AccountPasswords } from '../identity/authentication/account-passwords.ts';
import type { UserNameRules } from '../identity/authentication/user-name-rules.ts';
import type { GroupPages } from '../identity/users/group-pages-store.ts';
import type { User, UserStore } from '../identity/users/user-store.ts';
import { type UserVolumeStore, volumeSource } from '../identity/users/user-volume-store.ts';
import { HubError } from '../platform/errors.ts';
import { hubCommand } from '../platform/files/program-folder.ts';
import { time } from './models.ts';
import { operation, view } from './operation.ts';

export interface Deps {
  readonly users: Pick<UserStore, 'findByName' | 'list'>;
  readonly accounts: Pick<Accounts, 'create' | 'change'>;
  readonly acting: Pick<ActingOnUsers, 'requireMayTakeOver'>;
  readonly binding: Pick<AccountBinding, 'choose'>;
  readonly userNames: Pick<UserNameRules, 'resolve' | 'resolveNew'>;
  readonly passwords: Pick<AccountPasswords, 'isUsed' | 'problemWith' | 'apiTokenCount' | 'set'>;
  readonly userVolumes: Pick<UserVolumeStore, 'list'>;
  readonly groupPages: Pick<GroupPages, 'membershipsOf'>;
  readonly setUpLink: Pick<SetUpLink, 'issue' | 'endWhereDone'>;
}

type Found = Pick<Deps, 'users' | 'userNames'>;

const pageSize = 500;

const onAccount = {
  audience: 'command',
  method: 'POST',
  tag: 'users',
  scopes: ['admin:users'],
  needsRecentLogin: true,
} as const;

const mustChange = z.boolean().describe('Whether the next login must choose another one.');

const volumeName = {
  server: z.string().describe('Empty for the default server, and for a volume of all servers.'),
  volume: z.string().describe('Which volume of the configuration it takes the place of.'),
};

const listedAccount = z.object({
  name: z.string(),
  admin: z.boolean(),
  invited: z.boolean(),
  suspended: z.boolean(),
  created: time,
  last_activity: time.nullable(),
  system_account: z.string().nullable(),
});

/** Accounts as commands show and change them. */
export const commandAccountOperations = [
  operation({
    id: 'viewAccounts',
    audience: 'program',
    byCommand: true,
    method: 'GET',
    path: '/accounts',
    tag: 'internal',
    summary: 'List the accounts of all users',
    scopes: ['list:users'],
    query: z.object({ after: z.string().optional() }),
    answers: {
      200: {
        description: 'One page of them.',
        schema: z.object({
          accounts: z.array(listedAccount),
          next: z.string().optional().describe('What the next page comes after.'),
        }),
      },
    },
  }).handle(async ({ query: { after } }, { users }: Pick<Deps, 'users'>) => {
    const edge = after === undefined ? undefined : ({ side: 'after', key: after } as const);
    const { items, isLast } = await users.list({ limit: pageSize, edge });
    const accounts = items.map((user) => ({
      name: user.name,
      admin: user.isAdmin,
      invited: user.isInvited,
      suspended: user.isSuspended,
      created: user.createdAt.toISOString(),
      last_activity: user.lastActivityAt?.toISOString() ?? null,
      system_account: user.systemAccount ?? null,
    }));
    return { status: 200, body: { accounts, next: isLast ? undefined : items.at(-1)?.key } };
  }),
  operation({
    id: 'viewAccount',
    audience: 'program',
    byCommand: true,
    method: 'GET',
    path: '/accounts/{name}',
    tag: 'internal',
    summary: 'Show the account of a user',
    scopes: ['read:users'],
    target: 'user',
    answers: {
      200: {
        description: 'The account.',
        schema: listedAccount.pick({ name: true, admin: true, system_account: true }).extend({
          groups: z.array(z.object({ name: z.string(), origin: z.string() })),
          volumes: z.array(z.object({ ...volumeName, source: z.string() })),
        }),
      },
    },
  }).handle(async ({ params }, deps: Found & Pick<Deps, 'groupPages' | 'userVolumes'>) => {
    const { id, name, isAdmin, systemAccount } = await accountOf(params.name, deps);
    const groups = (await deps.groupPages.membershipsOf(name)).map((group) => ({
      name: group.name,
      origin: group.origin,
    }));
    const volumes = (await deps.userVolumes.list(id)).map(({ serverName, ...volume }) => ({
      server: serverName,
      ...volume,
    }));
    const body = { name, admin: isAdmin, system_account: systemAccount ?? null, groups, volumes };
    return { status: 200, body };
  }),
  view({
    id: 'viewNewAccount',
    audience: 'command',
    path: '/accounts/{name}/new',
    scopes: ['admin:users'],
    target: 'user',
    query: z.object({ authenticator: z.string().optional() }),
  }).handle(async ({ params, query }, { users, userNames, passwords, binding }: Deps) => {
    binding.choose(query.authenticator);
    const name = userNames.resolveNew(params.name);
    if ((await users.findByName(name)) !== undefined) {
      throw new HubError('conflict', `The user ${name} exists already.`, {
        hint: `To set a new password: ${hubCommand(`user passwd ${name}`)}`,
      });
    }
    return { name, takes_password: passwords.isUsed };
  }),
  operation({
    ...onAccount,
    id: 'createAccount',
    path: '/accounts/{name}/new',
    audit: ['user.create', 'password.change'],
    summary: 'Create a user, with a password if wanted',
    body: z.object({
      admin: z.boolean(),
      authenticator: z.string().optional(),
      password: z.object({ text: z.string(), must_change: mustChange }).optional(),
    }),
    answers: { 204: { description: 'The user is there.' } },
  }).handle(async ({ params, body, caller }, deps: Deps) => {
    const { accounts, userNames, passwords, setUpLink } = deps;
    const { admin: isAdmin, authenticator, password } = body;
    if (password !== undefined)
      requireGood(password.text, userNames.resolveNew(params.name), passwords);
    const { created } = await accounts.create(caller, [params.name], { isAdmin, authenticator });
    const [user] = created;
    if (password !== undefined && user !== undefined)
      await passwords.set(user, password.text, { mustChange: password.must_change });
    await setUpLink.endWhereDone();
  }),
  view({
    id: 'viewPassword',
    audience: 'command',
    path: '/accounts/{name}/password',
    scopes: ['admin:users'],
    target: 'user',
  }).handle(async ({ params }, deps: Found & Pick<Deps, 'passwords'>) => {
    const user = await accountOf(params.name, deps);
    requireUsed(deps.passwords, 'Add "password" to Hub.authenticator_class.');
    return { name: user.name, api_tokens: await deps.passwords.apiTokenCount(user.id) };
  }),
  operation({
    ...onAccount,
    id: 'setPassword',
    path: '/accounts/{name}/password',
    target: 'user',
    audit: ['password.change', 'session.end', 'token.revoke'],
    log: 'password set',
    summary: 'Set the password of a user and end their logins',
    body: z.object({
      password: z.string(),
      must_change: mustChange,
      end_tokens: z.boolean().describe('Whether API tokens end too.'),
    }),
    answers: { 204: { description: 'It is set.' } },
  }).handle(async ({ params, body, caller }, { acting, passwords, setUpLink, ...deps }: Deps) => {
    const user = await accountOf(params.name, deps);
    await acting.requireMayTakeOver(caller, user);
    requireUsed(passwords, 'Add "password" to Hub.authenticator_class.');
    requireGood(body.password, user.name, passwords);
    const { must_change: mustChange, end_tokens: endsApiTokens } = body;
    await passwords.set(user, body.password, { mustChange, endsApiTokens });
    await setUpLink.endWhereDone();
  }),
  operation({
    ...onAccount,
    id: 'setSystemAccount',
    path: '/accounts/{name}/system-account',
    target: 'user',
    audit: ['user.change'],
    log: 'user changed',
    summary: "Change whose files a user's servers have",
    body: z.object({ system_account: z.string() }),
    answers: { 204: { description: 'It is changed.' } },
  }).handle(async ({ params, body, caller }, { accounts }: Pick<Deps, 'accounts'>) => {
    await accounts.change(caller, params.name, { systemAccount: body.system_account });
  }),
  operation({
    ...onAccount,
    id: 'setUserVolume',
    path: '/accounts/{name}/volume',
    target: 'user',
    audit: ['user.change'],
    log: 'user changed',
    summary: "Have a volume that is there already be one of a user's",
    body: z.object({
      ...volumeName,
      source: z.string().regex(volumeSource, 'must be the name of a claim').nullable(),
    }),
    answers: { 204: { description: 'The next start uses it.' } },
  }).handle(async ({ params, body, caller }, { accounts }: Pick<Deps, 'accounts'>) => {
    const { server: serverName, volume, source } = body;
    await accounts.change(caller, params.name, {
      volume: { serverName, volume, source: source ?? undefined },
    });
  }),
  operation({
    ...onAccount,
    id: 'createSetUpLink',
    path: '/set-up-link',
    audit: { none: 'What is recorded is the administrator that it makes.' },
    summary: 'Make a new link that makes the first administrator',
    answers: { 201: { description: 'The link, this once.', schema: z.object({ url: z.url() }) } },
  }).handle(async (_request, { passwords, setUpLink }: Pick<Deps, 'passwords' | 'setUpLink'>) => {
    requireUsed(passwords, 'Name the first administrators in Authenticator.admin_users.');
    const link = await setUpLink.issue();
    if (link === undefined) {
      throw new HubError('conflict', 'There is an administrator already.', {
        hint: `To set a new password: ${hubCommand('user passwd NAME')}`,
      });
    }
    return { status: 201, body: { url: link.href } };
  }),
];

async function accountOf(typed: string, { users, userNames }: Found): Promise<User> {
  const name = userNames.resolve(typed);
  const user = await users.findByName(name);
  if (user !== undefined) return user;
  throw new HubError('not_found', `There is no user ${name}.`, {
    hint: `See: ${hubCommand('user list')}`,
  });
}

function requireUsed({ isUsed }: Pick<AccountPasswords, 'isUsed'>, hint: string): void {
  if (isUsed) return;
  throw new HubError('bad_request', 'No configured authenticator uses passwords of the hub.', {
    hint,
  });
}

function requireGood(
  password: string,
  userName: string,
  passwords: Pick<AccountPasswords, 'problemWith'>,
): void {
  const problem = passwords.problemWith(password, userName);
  if (problem !== undefined) throw new HubError('bad_request', problem);
}
