import type { Context } from 'koa';
import type { ActingOnUsers } from '../../accounts/acting-on-users.ts';
import { type RoleAdministration, versionOfRole } from '../../accounts/role-administration.ts';
import { HubError } from '../../errors.ts';
import type { Role, RoleSubjectKind } from '../../rbac/role.ts';
import { type RoleMembers, runtimeOrigin } from '../../rbac/role-change-store.ts';
import { holderKey, type RoleStore } from '../../rbac/role-store.ts';
import { isForServicesOnly, type ScopeCatalogue } from '../../rbac/scope-definitions.ts';
import { describeScopes } from '../../rbac/scope-descriptions.ts';
import { message, type Phrase, text } from '../../texts/text.ts';
import type { ChangedMeanwhile } from '../elements/changed-meanwhile.ts';
import {
  isPastLast,
  listUrl,
  pageLength,
  pagingOf,
  queryIn,
  readQuery,
} from '../elements/list-query.ts';
import { lastPageOf, type PagingView } from '../elements/paging.ts';
import { problemOf } from '../problem-of.ts';
import {
  type Admin,
  type AdminContext,
  isOfFormerVersion,
  parameter,
  versionIn,
} from './admin-context.ts';
import { addDeletion } from './deletion-routes.ts';
import { adminRoleFormPage, roleFacts } from './role-form-page.ts';
import { adminRolePage, adminRolesPage } from './roles-page.ts';

const kinds = ['user', 'group', 'service'] as const;
/** They stand for no right that could be ticked. */
const notOffered = new Set(['(no_scope)', 'inherit']);

/** What the form of a role was sent with, or begins with. */
interface RoleForm {
  readonly name?: string;
  readonly description: string;
  readonly scopes: readonly string[];
  readonly problem?: Phrase;
  readonly changed?: ChangedMeanwhile;
}

/** `/hub/admin/roles`: roles, what they allow, and who holds them. */
export function adminRoleRoutes(
  admin: AdminContext,
  deps: {
    readonly roles: Pick<
      RoleStore,
      'getByName' | 'findByName' | 'list' | 'listHolders' | 'countHolders'
    >;
    readonly administration: RoleAdministration;
    readonly acting: Pick<ActingOnUsers, 'scopesBeyond'>;
    readonly catalogue: ScopeCatalogue;
  },
): void {
  const { pages } = admin;
  const { roles, administration, catalogue } = deps;
  const { urls } = pages;

  async function roleFor(ctx: Context, who: Admin, scope: string): Promise<Role> {
    who.require(scope);
    return roles.getByName(parameter(ctx, 'role'));
  }

  async function showRole(
    ctx: Context,
    who: Admin,
    role: Role,
    failure: {
      readonly typedKind?: string;
      readonly typedNames?: string;
      readonly problem?: Phrase;
    } = {},
  ): Promise<void> {
    const mayChange = who.may('admin:roles');
    const isFree = (kind: RoleSubjectKind) =>
      mayChange && administration.fixedMembers(role, kind) === undefined;
    const query = readQuery(ctx);
    const found = await roles.listHolders(role.name, query.options);
    const { items, total } = found;
    const urlOf: PagingView['urlOf'] = (page, edge) =>
      listUrl(urls.adminRole(role.name), '', page, edge);
    if (isPastLast(items, total)) return ctx.redirect(urlOf(lastPageOf(total, pageLength)));
    const page = adminRolePage({
      layout: await pages.formLayoutFor(ctx),
      role,
      allows: describeScopes(role.scopes, catalogue),
      assignments: items.map((each) => ({
        ...each,
        mayTakeAway: each.origin === runtimeOrigin && isFree(each.subjectKind),
      })),
      paging: pagingOf(query, found, holderKey, urlOf),
      assignable: kinds.filter(isFree),
      mayChange: mayChange && administration.isChangeable(role),
      ...failure,
    });
    pages.send(ctx, page, failure.problem === undefined ? 200 : 400);
  }

  async function showForm(
    ctx: Context,
    who: Admin,
    existing: Role | undefined,
    form: RoleForm,
  ): Promise<void> {
    const chosen = new Set(form.scopes);
    const plain = catalogue.names.filter(
      (name) => !notOffered.has(name) && !isForServicesOnly(name, catalogue),
    );
    const beyond = new Set(await deps.acting.scopesBeyond(who.caller, plain));
    const offered = plain.filter((name) => chosen.has(name) || !beyond.has(name));
    const page = adminRoleFormPage({
      layout: await pages.formLayoutFor(ctx),
      ...form,
      existing: existing && { name: existing.name, version: versionOfRole(existing) },
      choices: offered.map((scope) => ({
        scope,
        description: catalogue.get(scope)?.description ?? scope,
        isChosen: chosen.has(scope),
      })),
      filtered: form.scopes.filter((scope) => !offered.includes(scope)).join('\n'),
    });
    const isAnswer = form.problem !== undefined || form.changed !== undefined;
    pages.send(ctx, page, isAnswer ? 400 : 200);
  }

  admin.get('/admin/roles', async (ctx, who) => {
    who.require('read:roles');
    const holderCounts = await roles.countHolders();
    const page = adminRolesPage({
      layout: await pages.formLayoutFor(ctx),
      roles: (await roles.list()).map((role) => ({
        ...role,
        holderCount: holderCounts.get(role.name) ?? 0,
      })),
      mayCreate: who.may('admin:roles'),
    });
    pages.send(ctx, page);
  });

  admin.get('/admin/new-role', async (ctx, who) => {
    who.require('admin:roles');
    await showForm(ctx, who, undefined, { description: '', scopes: [] });
  });

  admin.post('/admin/new-role', async (ctx, who, form) => {
    who.require('admin:roles');
    const name = (form.get('name') ?? '').trim();
    const typed = { name, ...readForm(form) };
    try {
      await administration.create(who.caller, typed);
    } catch (error) {
      return showForm(ctx, who, undefined, { ...typed, problem: problemOf(error) });
    }
    const notice = { kind: 'good', text: text`The role ${name} is made.` } as const;
    pages.redirectWithNotice(ctx, urls.adminRole(name), notice);
  });

  admin.get('/admin/roles/:role', async (ctx, who) =>
    showRole(ctx, who, await roleFor(ctx, who, 'read:roles')),
  );

  admin.get('/admin/roles/:role/edit', async (ctx, who) => {
    const role = await roleFor(ctx, who, 'admin:roles');
    await showForm(ctx, who, role, role);
  });

  admin.post('/admin/roles/:role/edit', async (ctx, who, form) => {
    const role = await roleFor(ctx, who, 'admin:roles');
    const typed = readForm(form);
    try {
      versionIn(form)(versionOfRole(role));
      await administration.change(who.caller, role, typed);
    } catch (error) {
      if (isOfFormerVersion(error)) {
        return showForm(ctx, who, role, { ...typed, changed: await changeOf(who, role) });
      }
      return showForm(ctx, who, role, { ...typed, problem: problemOf(error) });
    }
    const notice = { kind: 'good', text: text`The role ${role.name} is changed.` } as const;
    pages.redirectWithNotice(ctx, urls.adminRole(role.name), notice);
  });

  admin.post('/admin/roles/:role/assign', async (ctx, who, form) => {
    const role = await roleFor(ctx, who, 'admin:roles');
    const typedNames = form.get('names') ?? '';
    const typedKind = form.get('kind') ?? '';
    const names = typedNames.split(/[\r\n,]+/).flatMap((name) => name.trim() || []);
    try {
      if (names.length === 0) throw new HubError('bad_request', text`Type at least one name.`);
      await administration.assign(who.caller, role, membersOf(typedKind, names));
    } catch (error) {
      return showRole(ctx, who, role, { typedKind, typedNames, problem: problemOf(error) });
    }
    const [first = ''] = names;
    const done = message(
      '{count, plural, one {{first} now holds the role.} other {# now hold the role.}}',
      { count: names.length, first },
    );
    pages.redirectWithNotice(ctx, urls.adminRole(role.name), { kind: 'good', text: done });
  });

  admin.post('/admin/roles/:role/take-away', async (ctx, who, form) => {
    const role = await roleFor(ctx, who, 'admin:roles');
    const name = form.get('name') ?? '';
    await administration.takeAway(who.caller, role, membersOf(form.get('kind') ?? '', [name]));
    const done = text`${name} no longer holds the role.`;
    const { page, edge } = queryIn(form);
    const url = listUrl(urls.adminRole(role.name), '', page, edge);
    pages.redirectWithNotice(ctx, url, { kind: 'good', text: done });
  });

  async function changeOf(who: Admin, role: Role): Promise<ChangedMeanwhile> {
    return { by: await admin.lastActor(who, ['role.save'], role.name), now: roleFacts(role) };
  }

  addDeletion(admin, '/admin/roles/:role/delete', {
    find: (ctx, who) => roleFor(ctx, who, 'admin:roles'),
    versionOf: versionOfRole,
    question: ({ name }) => ({
      title: text`Delete the role ${name}?`,
      consequences: [text`All who hold it lose at once what they may do by it alone.`],
      label: text`Delete role`,
      action: urls.adminRole(name, 'delete'),
      cancelUrl: urls.adminRole(name),
    }),
    changeOf,
    async delete(who, role, requireVersion) {
      requireVersion(versionOfRole(role));
      await administration.delete(who.caller, role);
    },
    done: ({ name }) => ({ url: urls.adminRoles, text: text`The role ${name} is deleted.` }),
  });
}

function readForm(form: URLSearchParams): { description: string; scopes: string[] } {
  const filtered = (form.get('filtered') ?? '')
    .split(/[\r\n]+/)
    .flatMap((line) => line.trim() || []);
  const description = (form.get('description') ?? '').trim();
  return { description, scopes: [...new Set([...form.getAll('scope'), ...filtered])] };
}

function membersOf(kind: string, names: readonly string[]): RoleMembers {
  return {
    user: kind === 'user' ? names : [],
    group: kind === 'group' ? names : [],
    service: kind === 'service' ? names : [],
  };
}
