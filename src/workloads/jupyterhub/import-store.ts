import type { Kysely } from 'kysely';
import type { Sealer } from '../../platform/crypto/sealer.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import type { Tables } from '../../platform/store/tables.ts';
import { writeGroups, writePasswords, writeRoles, writeUsers } from './import-people-store.ts';
import type { ImportPlan } from './import-plan.ts';
import { type Importing, type ImportResult, planKinds } from './import-rows-store.ts';
import { writeServiceSecrets, writeServices } from './import-services-store.ts';
import { saveTaken, setNamesakesApart } from './import-taken-store.ts';
import { writeServers, writeShares, writeTokens, writeVolumes } from './import-things-store.ts';

/** Of the rights that were given. */
const maxAudited = 100;

/** Thrown to undo what was tried. */
class OnlyTried extends Error {
  readonly result: ImportResult;

  constructor(result: ImportResult) {
    super('it was only tried');
    this.result = result;
  }
}

export interface ImportOptions {
  /** Whether all is undone again. */
  readonly dryRun: boolean;
  /** Whether what is there already becomes as the JupyterHub has it, and what that has no more goes. */
  readonly update: boolean;
  /** Of second factors. */
  readonly sealer: Sealer;
}

/**
 * Gives a hub that does not run what a plan says, in one transaction, and tells what that changed. What is there is left
 * as it is, unless it is to be updated.
 */
export async function importPlan(
  database: HubDatabase,
  plan: ImportPlan,
  { dryRun, ...options }: ImportOptions,
): Promise<ImportResult> {
  try {
    return await database.transaction(async (transaction) => {
      const result = await write(transaction, database, plan, options);
      if (dryRun) throw new OnlyTried(result);
      return result;
    });
  } catch (error) {
    if (error instanceof OnlyTried) return error.result;
    throw error;
  }
}

async function write(
  on: Kysely<Tables>,
  database: HubDatabase,
  whole: ImportPlan,
  options: Omit<ImportOptions, 'dryRun'>,
): Promise<ImportResult> {
  const { plan, left } = await setNamesakesApart(on, whole, options.update);
  const counts = Object.fromEntries(
    planKinds.map((kind) => [
      kind,
      { found: whole[kind].length, added: 0, changed: 0, removed: 0 },
    ]),
  ) as Importing['counts'];
  const result = { counts, given: [], left: [...left] };
  const importing: Importing = { on, database, plan, ...options, ...result, now: database.now() };
  const users = await writeUsers(importing);
  await writePasswords(importing, users.ids);
  const groupIds = await writeGroups(importing, users.ids);
  await writeServices(importing);
  await writeRoles(importing);
  await writeTokens(importing, users.ids);
  await writeServiceSecrets(importing);
  const serverIds = await writeServers(importing, users.ids);
  await writeVolumes(importing, users.ids);
  await writeShares(importing, { userIds: users.ids, groupIds, serverIds });
  await saveTaken(on, plan);
  const changes = Object.values(counts).map((each) => each.added + each.changed + each.removed);
  if (changes.every((count) => count === 0)) return result;
  const { given } = importing;
  await database.audit.record(on, {
    action: 'hub.import',
    users: users.added,
    detail: {
      users: counts.users.added,
      tokens: counts.tokens.added,
      servers: counts.servers.added,
      ...(given.length > 0 && { changed: given.slice(0, maxAudited), count: given.length }),
    },
  });
  return result;
}
