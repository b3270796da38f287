import type { Kysely } from 'kysely';
import { HubError } from '../../platform/errors.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import { countOf, textsOf } from '../../platform/store/queries.ts';
import type { Tables } from '../../platform/store/tables.ts';
import { text } from '../../platform/texts/text.ts';
import type { Role, RoleSubjectKind } from './role.ts';
import { assignmentAuditEvent, roleAuditEvent } from './role-audit-events.ts';
import { toAssignment } from './role-store.ts';

/** Whom a role is given to or taken from, by name. */
export type RoleMembers = Readonly<Record<RoleSubjectKind, readonly string[]>>;

/**
 * Changes to roles at run time. Each is made only while the role is still as it was read, so that what was checked
 * of it holds; otherwise the result is false.
 */
export interface RoleChangeStore {
  /** `taken` when there is one of that name, `full` when there are as many as there may be. */
  create(role: Role, maxRoles: number): Promise<'created' | 'taken' | 'full'>;
  replace(before: Role, after: Role): Promise<boolean>;
  /** With its assignments. */
  delete(role: Role): Promise<boolean>;
  /** Who holds it already keeps it as before. Throws `bad_request` with the users and groups that do not exist. */
  assign(role: Role, members: RoleMembers): Promise<boolean>;
  /** Only what was given at run time; all else is passed over. */
  takeAway(role: Role, members: RoleMembers): Promise<boolean>;
}

/** Of what is given over the API. */
export const runtimeOrigin = 'api';

const subjectKinds = ['user', 'group', 'service'] as const;

export function createRoleChangeStore(
  database: Pick<HubDatabase, 'dialect' | 'transaction' | 'announceChange' | 'audit'>,
): RoleChangeStore {
  const { audit } = database;

  async function change(
    role: Role,
    work: (transaction: Kysely<Tables>) => Promise<unknown>,
  ): Promise<boolean> {
    const isDone = await database.transaction(async (transaction) => {
      let query = transaction.selectFrom('roles').selectAll().where('name', '=', role.name);
      // Transactions of SQLite come one after another anyway.
      if (database.dialect === 'postgres') query = query.forUpdate();
      const row = await query.executeTakeFirst();
      const isSame =
        row?.description === role.description &&
        row.origin === role.origin &&
        row.scopes === JSON.stringify(role.scopes);
      if (isSame) await work(transaction);
      return isSame;
    });
    if (isDone) database.announceChange({ kind: 'rights_changed' });
    return isDone;
  }

  /** Keeps them from being deleted or renamed until the end of the transaction. */
  async function requireSubjects(
    transaction: Kysely<Tables>,
    { user, group }: RoleMembers,
  ): Promise<void> {
    for (const [kind, table, names] of [
      ['user', 'users', user],
      ['group', 'groups', group],
    ] as const) {
      if (names.length === 0) continue;
      let query = transaction
        .selectFrom(table)
        .select('name')
        .where('name', 'in', textsOf(names, database));
      if (database.dialect === 'postgres') query = query.forKeyShare();
      const found = new Set((await query.execute()).map(({ name }) => name));
      const missing = names.filter((name) => !found.has(name));
      if (missing.length === 0) continue;
      const listed = missing.slice(0, 5).map((name) => JSON.stringify(name));
      if (missing.length > listed.length) listed.push('…');
      const problem =
        kind === 'user'
          ? text`There is no such user: ${listed.join(', ')}.`
          : text`There is no such group: ${listed.join(', ')}.`;
      throw new HubError('bad_request', problem, { field: { name: 'names', problem } });
    }
  }

  return {
    async create({ name, description, scopes, origin }, maxRoles) {
      const outcome = await database.transaction(async (transaction) => {
        const madeBefore = transaction.selectFrom('roles').where('origin', '=', origin);
        if ((await countOf(madeBefore)) >= maxRoles) return 'full';
        const { numInsertedOrUpdatedRows = 0n } = await transaction
          .insertInto('roles')
          .values({ name, description, scopes: JSON.stringify(scopes), origin })
          .onConflict((conflict) => conflict.column('name').doNothing())
          .executeTakeFirst();
        if (numInsertedOrUpdatedRows === 0n) return 'taken';
        await audit.record(transaction, roleAuditEvent('role.save', name, { scopes }));
        return 'created';
      });
      if (outcome === 'created') database.announceChange({ kind: 'rights_changed' });
      return outcome;
    },

    replace: (before, { description, scopes }) =>
      change(before, async (transaction) => {
        await transaction
          .updateTable('roles')
          .set({ description, scopes: JSON.stringify(scopes) })
          .where('name', '=', before.name)
          .execute();
        await audit.record(transaction, roleAuditEvent('role.save', before.name, { scopes }));
      }),

    delete: (role) =>
      change(role, async (transaction) => {
        await transaction.deleteFrom('roles').where('name', '=', role.name).execute();
        await audit.record(transaction, roleAuditEvent('role.delete', role.name));
      }),

    assign: (role, members) =>
      change(role, async (transaction) => {
        await requireSubjects(transaction, members);
        const rows = subjectKinds.flatMap((kind) =>
          [...new Set(members[kind])].map((name) => ({
            role_name: role.name,
            subject_kind: kind,
            subject_name: name,
            origin: runtimeOrigin,
          })),
        );
        for (const row of rows) {
          const { numInsertedOrUpdatedRows } = await transaction
            .insertInto('role_assignments')
            .values(row)
            .onConflict((conflict) =>
              conflict.columns(['role_name', 'subject_kind', 'subject_name']).doNothing(),
            )
            .executeTakeFirst();
          if (numInsertedOrUpdatedRows !== 1n) continue;
          await audit.record(transaction, assignmentAuditEvent('role.assign', toAssignment(row)));
        }
      }),

    takeAway: (role, members) =>
      change(role, async (transaction) => {
        for (const kind of subjectKinds) {
          if (members[kind].length === 0) continue;
          const deleted = await transaction
            .deleteFrom('role_assignments')
            .where('role_name', '=', role.name)
            .where('subject_kind', '=', kind)
            .where('subject_name', 'in', textsOf(members[kind], database))
            .where('origin', '=', runtimeOrigin)
            .returningAll()
            .execute();
          const auditEvents = deleted.map((row) =>
            assignmentAuditEvent('role.unassign', toAssignment(row)),
          );
          await audit.record(transaction, ...auditEvents);
        }
      }),
  };
}
