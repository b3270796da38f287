import { isBcryptHash } from '../../identity/authentication/password-hash.ts';
import { findDefaultRole } from '../../identity/rbac/role.ts';
import { newGroupRow } from '../../identity/users/group-rows-store.ts';
import { totpSecretContext } from '../../identity/users/second-factor-store.ts';
import { newUserRow } from '../../identity/users/user-rows-store.ts';
import { addRows, type Importing, importOrigin, keyOf } from './import-rows-store.ts';

type Ids = ReadonlyMap<string, string>;

/** Answers with the ids of all users by name, and the names of those who are new. */
export async function writeUsers(
  importing: Importing,
): Promise<{ readonly ids: Ids; readonly added: readonly string[] }> {
  const { on, plan, update, counts, given, left, now } = importing;
  const there = await on
    .selectFrom('users')
    .select(['id', 'name', 'admin', 'created_at'])
    .execute();
  const rowOf = new Map(there.map((row) => [row.name, row]));
  for (const { name, isAdmin, createdAt } of plan.users) {
    const row = rowOf.get(name);
    if (row === undefined || row.admin === Number(isAdmin)) continue;
    // One who was made here.
    if (row.created_at !== createdAt) {
      const todo = `make this one an administrator, too, where it is the same person`;
      const why = 'one of this name is here, and no administrator';
      if (isAdmin) left.push({ what: `administrator ${name}`, why, todo });
      continue;
    }
    if (!update) continue;
    if (isAdmin) given.push(administrator(name));
    await on
      .updateTable('users')
      .set({ admin: Number(isAdmin) })
      .where('id', '=', row.id)
      .execute();
    counts.users.changed += 1;
  }
  const rows = plan.users
    .filter(({ name }) => !rowOf.has(name))
    .map(({ name, isAdmin, createdAt, lastActivityAt }) => ({
      ...newUserRow({ name, isAdmin, isInvited: true }),
      created_at: createdAt ?? now,
      last_activity_at: lastActivityAt ?? null,
    }));
  await addRows(importing, 'users', 'users', rows);
  given.push(...rows.flatMap(({ name, admin }) => (admin === 1 ? [administrator(name)] : [])));
  const ids = new Map([...there, ...rows].map(({ id, name }) => [name, id]));
  return { ids, added: rows.map(({ name }) => name) };
}

const administrator = (name: string) => `user ${name}: administrator`;

/** Of users who have none. A hash that was not replaced since, at a login, follows where things are to be updated. */
export async function writePasswords(importing: Importing, userIds: Ids): Promise<void> {
  const { on, plan, update, counts, now, sealer } = importing;
  if (plan.passwords.length === 0) return;
  const there = await on.selectFrom('password_credentials').selectAll().execute();
  const hashOf = new Map(there.map((row) => [row.user_id, row.password_hash]));
  const withIds = <Planned extends { readonly user: string }>(planned: readonly Planned[]) =>
    planned.flatMap(({ user, ...rest }) => {
      const id = userIds.get(user);
      return id === undefined ? [] : [{ ...rest, id }];
    });
  const passwords = withIds(plan.passwords);
  for (const { id, hash } of update ? passwords : []) {
    const former = hashOf.get(id);
    if (former === undefined || former === hash || !isBcryptHash(former)) continue;
    await on
      .updateTable('password_credentials')
      .set({ password_hash: hash, updated_at: now })
      .where('user_id', '=', id)
      .execute();
    counts.passwords.changed += 1;
  }
  await addRows(
    importing,
    'passwords',
    'password_credentials',
    passwords
      .filter(({ id }) => !hashOf.has(id))
      .map(({ id, hash }) => ({
        user_id: id,
        password_hash: hash,
        must_change: 0,
        updated_at: now,
      })),
  );
  const factors = await on.selectFrom('second_factors').select('user_id').execute();
  const known = new Set(factors.map(({ user_id }) => user_id));
  await addRows(
    importing,
    'secondFactors',
    'second_factors',
    withIds(plan.secondFactors)
      .filter(({ id }) => !known.has(id))
      .map(({ id, totpSecret }) => ({
        user_id: id,
        totp_secret_encrypted: sealer.seal(totpSecret, totpSecretContext(id)),
        confirmed_at: now,
        last_step: null,
      })),
  );
}

/** With their members. Answers with the ids of all groups by name. */
export async function writeGroups(importing: Importing, userIds: Ids): Promise<Ids> {
  const { on, plan, update, counts } = importing;
  const there = await on.selectFrom('groups').selectAll().execute();
  const rowOf = new Map(there.map((row) => [row.name, row]));
  for (const { name, properties } of update ? plan.groups : []) {
    const row = rowOf.get(name);
    if (row?.origin !== importOrigin || row.properties === properties) continue;
    await on.updateTable('groups').set({ properties }).where('id', '=', row.id).execute();
    counts.groups.changed += 1;
  }
  // Those of the configuration too, which the hub makes at its first start, and which have further members.
  const wanted = new Map([
    ...plan.members.map(({ group }) => [group, '{}'] as const),
    ...plan.groups.map(({ name, properties }) => [name, properties] as const),
  ]);
  const rows = [...wanted]
    .filter(([name]) => !rowOf.has(name))
    .map(([name, properties]) => ({ ...newGroupRow(name, importOrigin), properties }));
  await addRows(importing, 'groups', 'groups', rows);
  const ids = new Map([...there, ...rows].map(({ id, name }) => [name, id]));

  const members = new Map(
    plan.members.flatMap(({ group, user }) => {
      const [groupId, userId] = [ids.get(group), userIds.get(user)];
      if (groupId === undefined || userId === undefined) return [];
      const row = { group_id: groupId, user_id: userId, origin: importOrigin };
      return [[keyOf(groupId, userId), row] as const];
    }),
  );
  const planned = new Set(plan.groups.map(({ name }) => ids.get(name)));
  for (const row of await on.selectFrom('group_members').selectAll().execute()) {
    const isThere = members.delete(keyOf(row.group_id, row.user_id));
    if (!update || isThere || row.origin !== importOrigin || !planned.has(row.group_id)) continue;
    await on
      .deleteFrom('group_members')
      .where('group_id', '=', row.group_id)
      .where('user_id', '=', row.user_id)
      .execute();
    counts.members.removed += 1;
  }
  await addRows(importing, 'members', 'group_members', [...members.values()]);
  return ids;
}

/** With who holds them. */
export async function writeRoles(importing: Importing): Promise<void> {
  const { on, plan, update, counts, given } = importing;
  const there = await on.selectFrom('roles').selectAll().execute();
  const rowOf = new Map(there.map((row) => [row.name, row]));
  const roles = plan.roles.map(({ name, description, scopes }) => ({
    name,
    description,
    scopes: JSON.stringify(scopes),
    origin: importOrigin,
  }));
  for (const { name, description, scopes } of update ? roles : []) {
    const row = rowOf.get(name);
    const isSame = row?.scopes === scopes && row.description === description;
    if (row?.origin !== importOrigin || isSame) continue;
    await on.updateTable('roles').set({ description, scopes }).where('name', '=', name).execute();
    counts.roles.changed += 1;
    if (row.scopes !== scopes) given.push(`role ${name}: ${scopes}`);
  }
  const missing = roles.filter(({ name }) => !rowOf.has(name));
  await addRows(importing, 'roles', 'roles', missing);
  // The hub makes its own at its first start.
  const admin = findDefaultRole('admin');
  if (admin !== undefined && !rowOf.has('admin')) {
    const row = { ...admin, scopes: JSON.stringify(admin.scopes) };
    await addRows(importing, undefined, 'roles', [row]);
  }

  const assignments = new Map(
    plan.assignments.map(({ role, holder: { kind, name } }) => [
      keyOf(role, kind, name),
      { role_name: role, subject_kind: kind, subject_name: name, origin: importOrigin },
    ]),
  );
  const planned = new Set(roles.map(({ name }) => name));
  for (const row of await on.selectFrom('role_assignments').selectAll().execute()) {
    const { role_name: role, subject_kind: kind, subject_name: name, origin } = row;
    const isThere = assignments.delete(keyOf(role, kind, name));
    if (!update || isThere || origin !== importOrigin || !planned.has(role)) continue;
    await on
      .deleteFrom('role_assignments')
      .where('role_name', '=', role)
      .where('subject_kind', '=', kind)
      .where('subject_name', '=', name)
      .execute();
    counts.assignments.removed += 1;
  }
  const added = [...assignments.values()];
  await addRows(importing, 'assignments', 'role_assignments', added);
  for (const { role_name: role, subject_kind: kind, subject_name: name } of added)
    given.push(`${kind} ${name}: role ${role}`);
}
