import { randomUUID } from 'node:crypto';
import { hashSecret } from '../../platform/crypto/hash.ts';
import { randomToken } from '../../platform/crypto/random.ts';
import { textsOf } from '../../platform/store/queries.ts';
import { deleteMadeWith } from '../../platform/store/token-makers.ts';
import { addRows, type Importing, keyOf } from './import-rows-store.ts';

type Ids = ReadonlyMap<string, string>;

/** Tokens, each with its old hash until it is used. */
export async function writeTokens(importing: Importing, userIds: Ids): Promise<void> {
  const { on, database, plan, update, counts, now } = importing;
  const ids = textsOf(
    plan.tokens.map(({ id }) => id),
    database,
  );
  if (update) {
    const gone = await on
      .deleteFrom('access_tokens')
      // UUIDs of version 8: see `import-plan.ts`.
      .where('id', 'like', '________-____-8%')
      .where('id', 'not in', ids)
      .returning(['id', 'token_hash'])
      .execute();
    const goneHashes = textsOf(
      gone.map(({ token_hash }) => token_hash),
      database,
    );
    await on
      .updateTable('runtime_services')
      .set({ token_hash: null })
      .where('token_hash', 'in', goneHashes)
      .execute();
    counts.tokens.removed = gone.length;
    const goneIds = gone.map(({ id }) => id);
    await deleteMadeWith(on, database, goneIds);
    // Such as those of a service that Hub.services lacks for a while.
    const areGone = textsOf(goneIds, database);
    await on.deleteFrom('taken_tokens').where('id', 'in', areGone).execute();
  }
  // One that was revoked here stays so.
  const taken = await on.selectFrom('taken_tokens').select('id').where('id', 'in', ids).execute();
  const takenIds = new Set(taken.map(({ id }) => id));
  const missing = plan.tokens.filter(({ id }) => !takenIds.has(id));
  await addRows(
    importing,
    'tokens',
    'access_tokens',
    missing.map(({ id, owner, scopes, note, createdAt, lastUsedAt, expiresAt }) => ({
      id,
      // Of no token, until the one is used that the old hash is of.
      token_hash: hashSecret(randomToken()),
      kind: owner.kind,
      user_id: owner.kind === 'user' ? (userIds.get(owner.name) ?? null) : null,
      service_name: owner.kind === 'service' ? owner.name : null,
      server_id: null,
      client_id: null,
      session_id: null,
      made_by: null,
      code_hash: null,
      scopes: JSON.stringify(scopes),
      note,
      created_at: createdAt ?? now,
      last_used_at: lastUsedAt ?? null,
      expires_at: expiresAt ?? null,
    })),
  );
  await addRows(
    importing,
    undefined,
    'imported_tokens',
    missing.map(({ id, prefix, hash }) => ({ access_token_id: id, prefix, hash })),
  );
  const nowTaken = missing.map(({ id }) => ({ id }));
  await addRows(importing, undefined, 'taken_tokens', nowTaken);
}

/** Named servers, and default ones that are shared. Answers with the ids of all, by user id and name. */
export async function writeServers(importing: Importing, userIds: Ids): Promise<Ids> {
  const { on, plan, counts, now } = importing;
  const there = await on.selectFrom('servers').select(['id', 'user_id', 'name']).execute();
  const ids = new Map(there.map((row) => [keyOf(row.user_id, row.name), row.id]));
  const wanted = [...plan.servers, ...plan.shares.map(({ server }) => server)];
  const rows = wanted.flatMap(({ userName, name, displayName, createdAt, lastActivityAt }) => {
    const userId = userIds.get(userName);
    if (userId === undefined || ids.has(keyOf(userId, name))) return [];
    const id = randomUUID();
    ids.set(keyOf(userId, name), id);
    return {
      id,
      user_id: userId,
      name,
      display_name: displayName ?? null,
      state: 'stopped',
      url: null,
      spawner_state: '{}',
      user_options: '{}',
      failure: null,
      created_at: createdAt ?? now,
      started_at: null,
      last_activity_at: lastActivityAt ?? null,
    };
  });
  await addRows(importing, undefined, 'servers', rows);
  counts.servers.added = rows.filter(({ name }) => name !== '').length;
  return ids;
}

/** What is there already stays: it was chosen here. */
export async function writeVolumes(importing: Importing, userIds: Ids): Promise<void> {
  const there = await importing.on.selectFrom('user_volumes').selectAll().execute();
  const known = new Set(
    there.flatMap((row) => [row.source, keyOf(row.user_id, row.server_name, row.volume)]),
  );
  const rows = importing.plan.volumes.flatMap(({ userName, serverName, volume, source }) => {
    const userId = userIds.get(userName);
    if (userId === undefined || known.has(source)) return [];
    if (known.has(keyOf(userId, serverName, volume))) return [];
    known.add(source);
    return { user_id: userId, server_name: serverName, volume, source };
  });
  await addRows(importing, 'volumes', 'user_volumes', rows);
}

export async function writeShares(
  importing: Importing,
  {
    userIds,
    groupIds,
    serverIds,
  }: { readonly userIds: Ids; readonly groupIds: Ids; readonly serverIds: Ids },
): Promise<void> {
  const { on, plan, now } = importing;
  const there = await on.selectFrom('shares').selectAll().execute();
  const known = new Set(
    there.map((row) => keyOf(row.server_id, row.user_id ?? '', row.group_id ?? '')),
  );
  const rows = plan.shares.flatMap(({ server, recipient, scopes, createdAt }) => {
    const serverId = serverIds.get(keyOf(userIds.get(server.userName) ?? '', server.name));
    const userId = (recipient.kind === 'user' && userIds.get(recipient.name)) || null;
    const groupId = (recipient.kind === 'group' && groupIds.get(recipient.name)) || null;
    if (serverId === undefined || (userId ?? groupId) === null) return [];
    if (known.has(keyOf(serverId, userId ?? '', groupId ?? ''))) return [];
    return {
      id: randomUUID(),
      server_id: serverId,
      user_id: userId,
      group_id: groupId,
      scopes: JSON.stringify(scopes),
      created_at: createdAt ?? now,
    };
  });
  await addRows(importing, 'shares', 'shares', rows);
}
