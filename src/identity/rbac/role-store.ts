import { type Kysely, sql } from 'kysely';
import { HubError } from '../../platform/errors.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import { type ListPage, type OffsetPageAsked, readPage } from '../../platform/store/page-edge.ts';
import { countOf, textsOf } from '../../platform/store/queries.ts';
import type { Row, Tables } from '../../platform/store/tables.ts';
import { text } from '../../platform/texts/text.ts';
import {
  findDefaultRole,
  implicitRoleNames,
  type Role,
  type RoleAssignment,
  type RoleHolder,
  type RoleSubjectKind,
} from './role.ts';
import { assignmentAuditEvent, roleAuditEvent } from './role-audit-events.ts';

/** A set of changes made together. */
export interface RoleChanges {
  /** Roles to create or replace. */
  readonly save?: readonly Role[];
  /** Names of roles to delete, with their assignments. */
  readonly remove?: readonly string[];
  /** `users`: those who hold the role by it now, such as the members of the group. */
  readonly assign?: readonly (RoleAssignment & { readonly users?: readonly string[] })[];
  readonly revoke?: readonly Omit<RoleAssignment, 'origin'>[];
}

/** Narrows a list of assignments; everything given must match. */
export interface AssignmentFilter {
  readonly roleName?: string;
  readonly subjectKind?: RoleSubjectKind;
  readonly subjectName?: string;
}

/** Roles and who holds them. */
export interface RoleStore {
  findByName(name: string): Promise<Role | undefined>;
  /** Throws `not_found`. */
  getByName(name: string): Promise<Role>;
  list(): Promise<readonly Role[]>;
  listAssignments(filter?: AssignmentFilter): Promise<readonly RoleAssignment[]>;
  /** One page of those a role is given to, by kind and name; `holderKey` makes the keys of its edges. */
  listHolders(roleName: string, page: OffsetPageAsked): Promise<ListPage<RoleAssignment>>;
  /** The first of those that each of some roles is given to, at most so many of each, by kind and name. */
  firstHolders(roleNames: readonly string[], max: number): Promise<readonly RoleAssignment[]>;
  /** How many users, groups and services each role is given to; roles given to none are not in it. */
  countHolders(): Promise<ReadonlyMap<string, number>>;
  /** Every role of a holder: implicit, assigned, and of the holder's groups. Sorted by name. */
  heldBy(holder: RoleHolder): Promise<readonly Role[]>;
  /** The sorted names of all roles of many holders of one kind, by the holder's name. */
  namesGrantedTo(holders: readonly RoleHolder[]): Promise<ReadonlyMap<string, readonly string[]>>;
  /** Gives a user exactly these roles as far as this origin is concerned, ignoring unknown ones, which it returns. */
  syncRolesOfUser(
    userName: string,
    roleNames: readonly string[],
    origin: string,
  ): Promise<readonly string[]>;
  /** Makes all changes in one transaction, and announces them when there are any. */
  apply(changes: RoleChanges): Promise<void>;
}

export function createRoleStore(
  database: Pick<HubDatabase, 'kysely' | 'dialect' | 'transaction' | 'announceChange' | 'audit'>,
): RoleStore {
  const { kysely } = database;

  const findByName = async (name: string): Promise<Role | undefined> => {
    const row = await kysely
      .selectFrom('roles')
      .selectAll()
      .where('name', '=', name)
      .executeTakeFirst();
    return row && toRole(row);
  };

  const getByName = async (name: string): Promise<Role> => {
    const role = await findByName(name);
    if (role === undefined) throw new HubError('not_found', text`There is no such role.`);
    return role;
  };

  const list = async (): Promise<Role[]> => {
    const rows = await kysely.selectFrom('roles').selectAll().orderBy('name').execute();
    return rows.map(toRole);
  };

  const listAssignments = async ({
    roleName,
    subjectKind,
    subjectName,
  }: AssignmentFilter = {}): Promise<RoleAssignment[]> => {
    let query = kysely.selectFrom('role_assignments').selectAll();
    if (roleName !== undefined) query = query.where('role_name', '=', roleName);
    if (subjectKind !== undefined) query = query.where('subject_kind', '=', subjectKind);
    if (subjectName !== undefined) query = query.where('subject_name', '=', subjectName);
    const rows = await query
      .orderBy('role_name')
      .orderBy('subject_kind')
      .orderBy('subject_name')
      .execute();
    return rows.map(toAssignment);
  };

  const apply = async ({
    save = [],
    remove = [],
    assign = [],
    revoke = [],
  }: RoleChanges): Promise<void> => {
    if (save.length + remove.length + assign.length + revoke.length === 0) return;
    await database.transaction(async (transaction) => {
      for (const assignment of revoke) await deleteAssignment(transaction, assignment);
      for (const name of remove) {
        await transaction.deleteFrom('roles').where('name', '=', name).execute();
      }
      for (const role of save) await saveRole(transaction, role);
      for (const assignment of assign) await saveAssignment(transaction, assignment);
      await database.audit.record(
        transaction,
        ...revoke.map((assignment) => assignmentAuditEvent('role.unassign', assignment)),
        ...remove.map((name) => roleAuditEvent('role.delete', name)),
        // The hub's own are made at its first start.
        ...save
          .filter(({ origin }) => origin !== 'default')
          .map(({ name, scopes }) => roleAuditEvent('role.save', name, { scopes })),
        ...assign.map(({ users = [], ...assignment }) => ({
          ...assignmentAuditEvent('role.assign', assignment),
          users,
        })),
      );
    });
    database.announceChange({ kind: 'rights_changed' });
  };

  return {
    findByName,
    getByName,
    list,
    listAssignments,
    apply,

    async listHolders(roleName, asked) {
      const holders = kysely.selectFrom('role_assignments').where('role_name', '=', roleName);
      const inOrder = (direction: 'asc' | 'desc') =>
        holders.selectAll().orderBy('subject_kind', direction).orderBy('subject_name', direction);
      const page = await readPage(asked, await countOf(holders), {
        placeOf(key) {
          const [kind = '', ...rest] = key.split(':');
          return sql`(${kind}, ${rest.join(':')})`;
        },
        read({ isBackwards, place, offset, limit }) {
          const rows = inOrder(isBackwards ? 'desc' : 'asc')
            .limit(limit)
            .offset(offset);
          const excess = sql.raw(isBackwards ? '<' : '>');
          return place === undefined
            ? rows.execute()
            : rows.where(sql<boolean>`(subject_kind, subject_name) ${excess} ${place}`).execute();
        },
      });
      return { ...page, items: page.items.map(toAssignment) };
    },

    async firstHolders(roleNames, max) {
      const numbered = kysely
        .selectFrom('role_assignments')
        .selectAll()
        .select((select) =>
          select.fn
            .agg<number>('row_number')
            .over((over) =>
              over.partitionBy('role_name').orderBy('subject_kind').orderBy('subject_name'),
            )
            .as('number'),
        )
        .where('role_name', 'in', textsOf(roleNames, database));
      const rows = await kysely
        .selectFrom(numbered.as('numbered'))
        .selectAll()
        .where('number', '<=', max)
        .orderBy('role_name')
        .orderBy('number')
        .execute();
      return rows.map(toAssignment);
    },

    async countHolders() {
      const rows = await kysely
        .selectFrom('role_assignments')
        .select(['role_name', (of) => of.fn.countAll<number>().as('count')])
        .groupBy('role_name')
        .execute();
      return new Map(rows.map(({ role_name, count }) => [role_name, Number(count)]));
    },

    async heldBy(holder) {
      const implicit = implicitRoleNames(holder);
      const groupNames = holder.kind === 'user' ? holder.groupNames : [];
      const rows = await kysely
        .selectFrom('roles')
        .selectAll()
        .where((where) => {
          const assignedTo = (kind: RoleSubjectKind, names: readonly string[]) =>
            where(
              'name',
              'in',
              where
                .selectFrom('role_assignments')
                .select('role_name')
                .where('subject_kind', '=', kind)
                .where('subject_name', 'in', textsOf(names, database)),
            );
          return where.or([
            where('name', 'in', textsOf(implicit, database)),
            assignedTo(holder.kind, [holder.name]),
            assignedTo('group', groupNames),
          ]);
        })
        .orderBy('name')
        .execute();
      const roles = rows.map(toRole);
      // Before the first synchronisation with the configuration the defaults are not stored yet.
      const absent = implicit.filter((name) => !roles.some((role) => role.name === name));
      return [...roles, ...absent.flatMap((name) => findDefaultRole(name) ?? [])];
    },

    async namesGrantedTo(holders) {
      const subjects = Map.groupBy(holders.flatMap(subjectsOf), ({ kind }) => kind);
      const rows = await kysely
        .selectFrom('role_assignments')
        .select(['role_name', 'subject_kind', 'subject_name'])
        .where((where) =>
          where.or(
            [...subjects].map(([kind, named]) =>
              where.and([
                where('subject_kind', '=', kind),
                where('subject_name', 'in', textsOf(distinctNames(named), database)),
              ]),
            ),
          ),
        )
        .execute();
      const assigned = Map.groupBy(rows, (row) => `${row.subject_kind}:${row.subject_name}`);
      return new Map(
        holders.map((holder) => {
          const given = subjectsOf(holder)
            .flatMap(({ kind, name }) => assigned.get(`${kind}:${name}`) ?? [])
            .map((row) => row.role_name);
          return [holder.name, [...new Set([...implicitRoleNames(holder), ...given])].sort()];
        }),
      );
    },

    async syncRolesOfUser(userName, roleNames, origin) {
      const wanted = new Set(roleNames);
      const known = new Set((await list()).map(({ name }) => name));
      const grantedScopes = await listAssignments({ subjectKind: 'user', subjectName: userName });
      const grantedNames = new Set(grantedScopes.map(({ roleName }) => roleName));
      await apply({
        assign: [...wanted.intersection(known).difference(grantedNames)].map((roleName) => ({
          roleName,
          subjectKind: 'user',
          subjectName: userName,
          origin,
        })),
        revoke: grantedScopes.filter(
          (grantedScopes) => grantedScopes.origin === origin && !wanted.has(grantedScopes.roleName),
        ),
      });
      return [...wanted.difference(known)];
    },
  };
}

/** Whom a role must be assigned to for the holder to have it. */
function subjectsOf(holder: RoleHolder): { kind: RoleSubjectKind; name: string }[] {
  const groupNames = holder.kind === 'user' ? holder.groupNames : [];
  return [holder, ...groupNames.map((name) => ({ kind: 'group', name }) as const)];
}

function distinctNames(subjects: readonly { readonly name: string }[]): string[] {
  return [...new Set(subjects.map(({ name }) => name))];
}

async function saveRole(database: Kysely<Tables>, role: Role): Promise<void> {
  const { name, description, origin } = role;
  const values = { description, scopes: JSON.stringify(role.scopes), origin };
  await database
    .insertInto('roles')
    .values({ name, ...values })
    .onConflict((conflict) => conflict.column('name').doUpdateSet(values))
    .execute();
}

async function saveAssignment(
  database: Kysely<Tables>,
  { roleName, subjectKind, subjectName, origin }: RoleAssignment,
): Promise<void> {
  await database
    .insertInto('role_assignments')
    .values({
      role_name: roleName,
      subject_kind: subjectKind,
      subject_name: subjectName,
      origin,
    })
    .onConflict((conflict) =>
      conflict.columns(['role_name', 'subject_kind', 'subject_name']).doUpdateSet({ origin }),
    )
    .execute();
}

async function deleteAssignment(
  database: Kysely<Tables>,
  { roleName, subjectKind, subjectName }: Omit<RoleAssignment, 'origin'>,
): Promise<void> {
  await database
    .deleteFrom('role_assignments')
    .where('role_name', '=', roleName)
    .where('subject_kind', '=', subjectKind)
    .where('subject_name', '=', subjectName)
    .execute();
}

function toRole({ name, description, scopes, origin }: Row<'roles'>): Role {
  return { name, description, scopes: JSON.parse(scopes) as string[], origin };
}

/** The key of a holder's place in the list of those of a role. */
export function holderKey({ subjectKind, subjectName }: RoleAssignment): string {
  return `${subjectKind}:${subjectName}`;
}

export function toAssignment(row: Row<'role_assignments'>): RoleAssignment {
  return {
    roleName: row.role_name,
    subjectKind: row.subject_kind as RoleSubjectKind,
    subjectName: row.subject_name,
    origin: row.origin,
  };
}
