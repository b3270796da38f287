import type { Insertable, Kysely } from 'kysely';
import type { Sealer } from '../../platform/crypto/sealer.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import type { Tables } from '../../platform/store/tables.ts';
import type { ImportPlan } from './import-plan.ts';
import type { ImportNote } from './plan-servers.ts';

export const planKinds = [
  'users',
  'groups',
  'members',
  'roles',
  'assignments',
  'tokens',
  'services',
  'servers',
  'volumes',
  'shares',
  'passwords',
  'secondFactors',
] as const;
export type PlanKind = (typeof planKinds)[number];

/** What became of things of one kind. */
export interface ImportCount {
  /** As the JupyterHub has them. */
  readonly found: number;
  readonly added: number;
  readonly changed: number;
  readonly removed: number;
}

export type ImportCounts = Readonly<Record<PlanKind, ImportCount>>;

/** What an import did, or would do. */
export interface ImportResult extends Pick<Importing, 'given' | 'left'> {
  readonly counts: ImportCounts;
}

/** An import under way, in its transaction. */
export interface Importing {
  readonly on: Kysely<Tables>;
  readonly database: HubDatabase;
  readonly plan: ImportPlan;
  /** Whether what is there already becomes as the JupyterHub has it. */
  readonly update: boolean;
  /** What is given to whom that they did not have here, in words. */
  readonly given: string[];
  /** What is not taken over, because of what is here. */
  readonly left: ImportNote[];
  readonly counts: Record<PlanKind, { -readonly [Key in keyof ImportCount]: number }>;
  readonly now: number;
  /** Of second factors. */
  readonly sealer: Sealer;
}

/** Of what is made here, beside what the configuration has. */
export const importOrigin = 'api';

/** Rows of one statement: SQLite takes 32,766 parameters. */
const rowsAtOnce = 500;

/** Inserts rows, and counts them where a kind is given. */
export async function addRows<Name extends keyof Tables>(
  { on, counts }: Importing,
  kind: PlanKind | undefined,
  table: Name,
  rows: readonly Insertable<Tables[Name]>[],
): Promise<void> {
  for (let from = 0; from < rows.length; from += rowsAtOnce) {
    await on
      .insertInto(table)
      .values(rows.slice(from, from + rowsAtOnce))
      .execute();
  }
  if (kind !== undefined) counts[kind].added += rows.length;
}

/** One text for several names, whatever characters they hold. */
export const keyOf = (...parts: readonly string[]): string => JSON.stringify(parts);
