import type { Kysely } from 'kysely';
import type { Sealer } from '../../platform/crypto/sealer.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import type { Tables } from '../../platform/store/tables.ts';
import { writeGroups, writePasswords, writeRoles, writeUsers } from './import-people-store.ts';
import type { ImportPlan } from './import-plan.ts';
import { type ImportCounts, type Importing, planKinds } from './import-rows-store.ts';
import { writeServers, writeShares, writeTokens } from './import-things-store.ts';

/** Thrown to undo what was tried. */
class OnlyTried extends Error {
  readonly counts: ImportCounts;

  constructor(counts: ImportCounts) {
    super('it was only tried');
    this.counts = counts;
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
): Promise<ImportCounts> {
  try {
    return await database.transaction(async (transaction) => {
      const counts = await write(transaction, database, plan, options);
      if (dryRun) throw new OnlyTried(counts);
      return counts;
    });
  } catch (error) {
    if (error instanceof OnlyTried) return error.counts;
    throw error;
  }
}

async function write(
  on: Kysely<Tables>,
  database: HubDatabase,
  plan: ImportPlan,
  options: Omit<ImportOptions, 'dryRun'>,
): Promise<ImportCounts> {
  const counts = Object.fromEntries(
    planKinds.map((kind) => [kind, { found: plan[kind].length, added: 0, changed: 0, removed: 0 }]),
  ) as Importing['counts'];
  const importing: Importing = { on, database, plan, ...options, counts, now: database.now() };
  const users = await writeUsers(importing);
  await writePasswords(importing, users.ids);
  const groupIds = await writeGroups(importing, users.ids);
  await writeRoles(importing);
  await writeTokens(importing, users.ids);
  const serverIds = await writeServers(importing, users.ids);
  await writeShares(importing, { userIds: users.ids, groupIds, serverIds });
  const changes = Object.values(counts).map((each) => each.added + each.changed + each.removed);
  if (changes.every((count) => count === 0)) return counts;
  await database.audit.record(on, {
    action: 'hub.import',
    users: users.added,
    detail: {
      users: counts.users.added,
      tokens: counts.tokens.added,
      servers: counts.servers.added,
    },
  });
  return counts;
}
