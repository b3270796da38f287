import type { Kysely } from 'kysely';
import { createSettingStore } from '../../platform/store/setting-store.ts';
import type { Tables } from '../../platform/store/tables.ts';
import type { ImportPlan, PlannedHolder } from './import-plan.ts';
import type { ImportNote } from './plan-servers.ts';

/** Of the setting that has what was taken over. */
const key = 'jupyterhub:taken';

/** What is here of a JupyterHub, so that it is known from what was made here by the same name. */
interface Taken {
  /** Ids of groups. */
  readonly groups: readonly string[];
  /** Names of roles, and their scopes as they were written. */
  readonly roles: readonly (readonly [string, string])[];
  /** Names of services, and their definitions as they were written. */
  readonly services?: readonly (readonly [string, string])[];
}

/** A plan, without what has the name of something else here, and what is to be said about that. */
export interface PlanApart {
  readonly plan: ImportPlan;
  readonly left: readonly ImportNote[];
}

/**
 * Takes out of a plan what has the name of something that was made here and gives more than the JupyterHub did: members and
 * holders would gain what is its own. Roles that are the same here are given, and not changed.
 */
export async function setNamesakesApart(
  on: Kysely<Tables>,
  plan: ImportPlan,
  update: boolean,
): Promise<PlanApart> {
  const taken = await readTaken(on);
  const left: ImportNote[] = [];
  const todo = 'rename or delete one of them, and import again';

  const ours = new Set(taken.groups);
  const groups = await on.selectFrom('groups').select(['id', 'name', 'origin']).execute();
  const otherGroups = new Set(
    groups.flatMap(({ id, name, origin }) => (origin === 'config' || ours.has(id) ? [] : [name])),
  );
  for (const name of groupsOf(plan)) {
    if (!otherGroups.has(name)) continue;
    const what = `group ${name}, with its members, roles and shares`;
    left.push({ what, why: 'a group of this name was made here', todo });
  }

  const scopesTaken = new Map(taken.roles);
  const roles = await on.selectFrom('roles').select(['name', 'scopes']).execute();
  const scopesHere = new Map(roles.map(({ name, scopes }) => [name, scopes]));
  const [sameRoles, otherRoles] = [new Set<string>(), new Set<string>()];
  for (const { name, scopes } of plan.roles) {
    const here = scopesHere.get(name);
    if (here === undefined) continue;
    const isOurs = scopesTaken.get(name) === here;
    if (isSameList(here, scopes)) {
      if (!isOurs) sameRoles.add(name);
    } else if (!isOurs || !update) {
      otherRoles.add(name);
      left.push({
        what: `role ${name}, and who holds it`,
        why: isOurs
          ? 'it has other scopes by now'
          : 'a role of this name has other scopes here than there',
        todo: isOurs ? 'import again with --update' : todo,
      });
    }
  }

  const definitionsTaken = new Map(taken.services);
  const services = await on.selectFrom('runtime_services').selectAll().execute();
  const [otherServices, changedServices] = [new Set<string>(), new Set<string>()];
  for (const { name, clientId } of plan.services) {
    const here = services.find((row) => row.name === name || row.client_id === clientId);
    if (here === undefined || definitionsTaken.get(name) === here.definition) continue;
    if (here.name === name && definitionsTaken.has(name)) changedServices.add(name);
    else {
      otherServices.add(name);
      const what = `service ${name}, with its tokens and roles`;
      left.push({ what, why: 'a service of this name or client id was added here', todo });
    }
  }

  const raised = await raisedUsers(on, plan);
  for (const name of raised) {
    left.push({
      what: `user ${name}, with tokens and password`,
      why: 'one of this name is an administrator here, and not there',
      todo: 'where that is the same person, let them make new ones; or rename one of them',
    });
  }

  const isGroupFree = (name: string) => !otherGroups.has(name);
  const isFree = ({ kind, name }: PlannedHolder) =>
    !{ group: otherGroups, user: raised, service: otherServices }[kind].has(name);
  const isUserFree = ({ user }: { readonly user: string }) => !raised.has(user);
  return {
    left,
    plan: {
      ...plan,
      groups: plan.groups.filter(({ name }) => isGroupFree(name)),
      members: plan.members.filter(({ group }) => isGroupFree(group)),
      roles: plan.roles.filter(({ name }) => !otherRoles.has(name) && !sameRoles.has(name)),
      assignments: plan.assignments.filter(
        ({ role, holder }) => !otherRoles.has(role) && isFree(holder),
      ),
      tokens: plan.tokens.filter(({ owner }) => isFree(owner)),
      services: plan.services.filter(
        ({ name }) => !otherServices.has(name) && !changedServices.has(name),
      ),
      shares: plan.shares.filter(({ recipient }) => isFree(recipient)),
      passwords: plan.passwords.filter(isUserFree),
      secondFactors: plan.secondFactors.filter(isUserFree),
    },
  };
}

/** Notes what a plan has made here, once it is written. */
export async function saveTaken(on: Kysely<Tables>, plan: ImportPlan): Promise<void> {
  const former = await readTaken(on);
  const names = groupsOf(plan);
  const groups = await on.selectFrom('groups').select(['id', 'name']).execute();
  const roleNames = new Set(plan.roles.map(({ name }) => name));
  const roles = await on.selectFrom('roles').select(['name', 'scopes']).execute();
  const serviceNames = new Set(plan.services.map(({ name }) => name));
  const services = await on.selectFrom('runtime_services').select(['name', 'definition']).execute();
  const taken: Taken = {
    groups: [
      ...new Set([
        ...former.groups,
        ...groups.flatMap(({ id, name }) => (names.has(name) ? [id] : [])),
      ]),
    ],
    roles: [
      ...new Map([
        ...former.roles,
        ...roles.flatMap(({ name, scopes }) =>
          roleNames.has(name) ? [[name, scopes] as const] : [],
        ),
      ]),
    ],
    services: [
      ...new Map([
        ...(former.services ?? []),
        ...services.flatMap(({ name, definition }) =>
          serviceNames.has(name) ? [[name, definition] as const] : [],
        ),
      ]),
    ],
  };
  await createSettingStore({ kysely: on }).set(key, JSON.stringify(taken));
}

async function readTaken(on: Kysely<Tables>): Promise<Taken> {
  const value = await createSettingStore({ kysely: on }).find(key);
  return value === undefined ? { groups: [], roles: [] } : (JSON.parse(value) as Taken);
}

/** Administrators here who have the name of somebody who is none there; but for those who came from there. */
async function raisedUsers(on: Kysely<Tables>, { users }: ImportPlan): Promise<Set<string>> {
  const planned = new Map(users.map((user) => [user.name, user]));
  const administrators = await on
    .selectFrom('users')
    .select(['name', 'created_at'])
    .where('admin', '=', 1)
    .execute();
  return new Set(
    administrators.flatMap(({ name, created_at }) => {
      const old = planned.get(name);
      return old === undefined || old.isAdmin || old.createdAt === created_at ? [] : [name];
    }),
  );
}

function groupsOf(plan: ImportPlan): Set<string> {
  const holders = [
    ...plan.assignments.map(({ holder }) => holder),
    ...plan.shares.map(({ recipient }) => recipient),
  ];
  return new Set([
    ...plan.groups.map(({ name }) => name),
    ...plan.members.map(({ group }) => group),
    ...holders.flatMap(({ kind, name }) => (kind === 'group' ? [name] : [])),
  ]);
}

function isSameList(json: string, list: readonly string[]): boolean {
  const sorted = (JSON.parse(json) as string[]).toSorted();
  return JSON.stringify(sorted) === JSON.stringify(list.toSorted());
}
