import type Router from '@koa/router';
import { z } from 'zod';
import type { GroupMembers } from '../accounts/group-members.ts';
import { checkAccess, listFilter } from '../rbac/access-check.ts';
import type { Authority } from '../rbac/authority.ts';
import type { Caller } from '../rbac/caller.ts';
import type { RoleStore } from '../rbac/role-store.ts';
import type { Group, GroupStore } from '../users/group-store.ts';
import { callerOf } from './caller-middleware.ts';
import { parseBody, parsePage, writePage } from './parse-body.ts';
import { requireScopes } from './require-scopes.ts';

const names = z.array(z.string().min(1).max(255)).max(1000);
const creation = z.strictObject({ groups: names.min(1), users: names.default([]) });
const memberNames = z.strictObject({ users: names });
const optionalMembers = z.strictObject({ users: names.default([]) });
const properties = z.record(z.string(), z.unknown());

/** `/groups` and what is below it. */
export function groupRoutes(
  router: Router,
  parts: {
    readonly groups: GroupStore;
    readonly members: GroupMembers;
    readonly roles: RoleStore;
    readonly authority: Authority;
    readonly publicOrigin: string;
    readonly bodyLimitBytes: number;
  },
): void {
  const { groups, members, roles, authority, bodyLimitBytes } = parts;

  async function present(group: Group, caller: Caller): Promise<Record<string, unknown>> {
    const membership = await authority.membership();
    const resource = { kind: 'group', name: group.name } as const;
    const may = (scope: string) =>
      checkAccess(caller.scopes, scope, resource, membership) === 'granted';
    const model: Record<string, unknown> = { kind: 'group', name: group.name };
    if (may('read:groups')) {
      model['users'] = await groups.memberNames(group.name);
      model['properties'] = group.properties;
    }
    if (may('read:roles:groups')) {
      model['roles'] = (await roles.heldBy(resource)).map(({ name }) => name);
    }
    return model;
  }

  router.get('/groups', async (ctx) => {
    const caller = callerOf(ctx);
    const filter = listFilter(caller.scopes, 'list:groups');
    if (filter === undefined) requireScopes(ctx, ['list:groups'], await authority.membership());
    const { offset, limit } = parsePage(ctx);
    const everything = filter === 'all';
    const page = await groups.list(
      everything ? { offset, limit } : { offset: 0, limit: Number.MAX_SAFE_INTEGER },
    );
    const visible = page.items.filter(
      ({ name }) => filter === 'all' || filter?.groups.has(name) === true,
    );
    const shown = everything ? visible : visible.slice(offset, offset + limit);
    writePage(ctx, {
      items: await Promise.all(shown.map((group) => present(group, caller))),
      total: everything ? page.total : visible.length,
      publicOrigin: parts.publicOrigin,
    });
  });

  router.post('/groups', async (ctx) => {
    const caller = requireScopes(ctx, ['admin:groups'], await authority.membership());
    const body = await parseBody(ctx, creation, bodyLimitBytes);
    const created = [];
    for (const name of body.groups) {
      const group = await groups.create({ name, origin: 'api' });
      if (body.users.length > 0) await members.add(caller, name, body.users);
      created.push(await present(group, caller));
    }
    ctx.status = 201;
    ctx.body = created;
  });

  router.get('/groups/:group', async (ctx) => {
    const name = ctx.params['group'] ?? '';
    const scopes = ['read:groups', 'read:groups:name', 'read:roles:groups'];
    const caller = requireScopes(ctx, scopes, await authority.membership(), {
      kind: 'group',
      name,
    });
    ctx.body = await present(await groups.getByName(name), caller);
  });

  router.post('/groups/:group', async (ctx) => {
    const name = ctx.params['group'] ?? '';
    const caller = requireScopes(ctx, ['admin:groups'], await authority.membership());
    const { users } = await parseBody(ctx, optionalMembers, bodyLimitBytes);
    const group = await groups.create({ name, origin: 'api' });
    if (users.length > 0) await members.add(caller, name, users);
    ctx.status = 201;
    ctx.body = await present(group, caller);
  });

  router.delete('/groups/:group', async (ctx) => {
    const name = ctx.params['group'] ?? '';
    requireScopes(ctx, ['delete:groups'], await authority.membership(), { kind: 'group', name });
    await groups.getByName(name);
    await groups.delete(name);
    ctx.status = 204;
  });

  router.post('/groups/:group/users', async (ctx) => {
    const name = ctx.params['group'] ?? '';
    const caller = requireScopes(ctx, ['groups'], await authority.membership(), {
      kind: 'group',
      name,
    });
    const { users } = await parseBody(ctx, memberNames, bodyLimitBytes);
    const group = await groups.getByName(name);
    await members.add(caller, name, users);
    ctx.body = await present(group, caller);
  });

  router.delete('/groups/:group/users', async (ctx) => {
    const name = ctx.params['group'] ?? '';
    const caller = requireScopes(ctx, ['groups'], await authority.membership(), {
      kind: 'group',
      name,
    });
    const { users } = await parseBody(ctx, memberNames, bodyLimitBytes);
    const group = await groups.getByName(name);
    await members.remove(name, users);
    ctx.body = await present(group, caller);
  });

  router.put('/groups/:group/properties', async (ctx) => {
    const name = ctx.params['group'] ?? '';
    const caller = requireScopes(ctx, ['groups'], await authority.membership(), {
      kind: 'group',
      name,
    });
    await groups.getByName(name);
    await groups.setProperties(name, await parseBody(ctx, properties, bodyLimitBytes));
    ctx.body = await present(await groups.getByName(name), caller);
  });
}
