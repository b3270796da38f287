import type Router from '@koa/router';
import type { Context } from 'koa';
import { z } from 'zod';
import type { Accounts } from '../accounts/accounts.ts';
import { HubError } from '../errors.ts';
import { listedUserNames, listFilter } from '../rbac/access-check.ts';
import type { Authority } from '../rbac/authority.ts';
import type { User, UserStore } from '../users/user-store.ts';
import { callerOf } from './caller-middleware.ts';
import { parseBody, parsePage, writePage } from './parse-body.ts';
import { requireScopes } from './require-scopes.ts';
import type { UserDirectory } from './user-directory.ts';
import { presentUser, userReadScopes } from './user-model.ts';

const creation = z.strictObject({
  usernames: z.array(z.string()).min(1),
  admin: z.boolean().default(false),
});
const singleCreation = z.strictObject({ admin: z.boolean().default(false) });
const change = z.strictObject({ name: z.string().optional(), admin: z.boolean().optional() });

/** The API's names for an order, and the store's. */
const sorts = {
  name: 'name',
  '-name': '-name',
  id: 'created',
  '-id': '-created',
  last_activity: 'lastActivity',
  '-last_activity': '-lastActivity',
} as const;

/** `/users` and `/users/:name`. */
export function userRoutes(
  router: Router,
  parts: {
    readonly users: UserStore;
    readonly accounts: Accounts;
    readonly authority: Authority;
    readonly directory: UserDirectory;
    /** Lets the stores know of activity that was only noted so far. */
    readonly catchUpActivity: () => Promise<void>;
    readonly publicOrigin: string;
    readonly bodyLimitBytes: number;
  },
): void {
  const { users, accounts, authority, directory, bodyLimitBytes } = parts;

  /** What is told about a user in answer to a question: servers that are stopped when asked for. */
  const detailsFor = (ctx: Context, user: User) =>
    directory.detailsOf(user, {
      withStoppedServers: isTrue(ctx.query['include_stopped_servers']),
    });

  router.get('/users', async (ctx) => {
    const caller = callerOf(ctx);
    const membership = await authority.membership();
    const filter = listFilter(caller.scopes, 'list:users');
    if (filter === undefined) requireScopes(ctx, ['list:users'], membership);
    const { offset, limit } = parsePage(ctx);
    const sort = sorts[String(ctx.query['sort'] ?? 'name') as keyof typeof sorts];
    if (sort === undefined) {
      throw new HubError('bad_request', `sort must be one of ${Object.keys(sorts).join(', ')}.`);
    }
    const state = ctx.query['state'];
    if (state !== undefined && state !== 'active' && state !== 'ready' && state !== 'inactive') {
      throw new HubError('bad_request', 'state must be active, ready or inactive.');
    }
    const { name_filter: nameFilter } = ctx.query;
    // Whoever stops idle servers must not take one for idle that was used a moment ago.
    await parts.catchUpActivity();
    const page = await users.list({
      offset,
      limit,
      sort,
      ...(state === undefined ? {} : { serverState: state }),
      ...(typeof nameFilter === 'string' ? { nameFilter } : {}),
      ...(filter === 'all' || filter === undefined
        ? {}
        : { onlyNames: listedUserNames(filter, membership) }),
    });
    const details = await Promise.all(page.items.map((user) => detailsFor(ctx, user)));
    // Whoever may list a user may know the name.
    const names = page.items.map(({ name }) => `read:users:name!user=${name}`);
    const scopes = new Set([...caller.scopes, ...names]);
    writePage(ctx, {
      items: details.map((entry) => presentUser(entry, scopes, membership)),
      total: page.total,
      publicOrigin: parts.publicOrigin,
    });
  });

  router.post('/users', async (ctx) => {
    const caller = requireScopes(ctx, ['admin:users'], await authority.membership());
    const { usernames, admin } = await parseBody(ctx, creation, bodyLimitBytes);
    const created = await accounts.create(caller, usernames, { isAdmin: admin });
    const membership = await authority.membership();
    const details = await Promise.all(created.map((user) => directory.detailsOf(user)));
    ctx.status = 201;
    ctx.body = details.map((entry) => presentUser(entry, caller.scopes, membership));
  });

  router.get('/users/:name', async (ctx) => {
    const name = ctx.params['name'] ?? '';
    const membership = await authority.membership();
    const caller = requireScopes(ctx, userReadScopes, membership, { kind: 'user', name });
    await parts.catchUpActivity();
    ctx.body = presentUser(
      await detailsFor(ctx, await users.getByName(name)),
      caller.scopes,
      membership,
    );
  });

  router.post('/users/:name', async (ctx) => {
    const caller = requireScopes(ctx, ['admin:users'], await authority.membership());
    const { admin } = await parseBody(ctx, singleCreation, bodyLimitBytes);
    const [user] = await accounts.create(caller, [ctx.params['name'] ?? ''], { isAdmin: admin });
    if (user === undefined) throw new HubError('conflict', 'This user exists already.');
    ctx.status = 201;
    ctx.body = presentUser(
      await directory.detailsOf(user),
      caller.scopes,
      await authority.membership(),
    );
  });

  router.patch('/users/:name', async (ctx) => {
    const name = ctx.params['name'] ?? '';
    const resource = { kind: 'user', name } as const;
    const caller = requireScopes(ctx, ['admin:users'], await authority.membership(), resource);
    const { name: newName, admin } = await parseBody(ctx, change, bodyLimitBytes);
    const user = await accounts.change(caller, name, {
      ...(newName === undefined ? {} : { name: newName }),
      ...(admin === undefined ? {} : { isAdmin: admin }),
    });
    ctx.body = presentUser(
      await directory.detailsOf(user),
      caller.scopes,
      await authority.membership(),
    );
  });

  router.delete('/users/:name', async (ctx) => {
    const name = ctx.params['name'] ?? '';
    const resource = { kind: 'user', name } as const;
    const caller = requireScopes(ctx, ['delete:users'], await authority.membership(), resource);
    await accounts.delete(caller, name);
    ctx.status = 204;
  });
}

/** A flag in a query: set when it is there, also without a value, unless it says no. */
function isTrue(value: string | string[] | undefined): boolean {
  return typeof value === 'string' && !/^(?:0|false|no)$/i.test(value);
}
