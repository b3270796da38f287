import { type Kysely, sql } from 'kysely';
import type { Tables } from './tables.ts';

/** What one login, client, token or grant could fill: by what a row is known, and by what it is newer than another. */
const bounded = {
  access_tokens: { key: 'id', time: 'created_at' },
  authorization_codes: { key: 'code_hash', time: 'created_at' },
  grants: { key: 'id', time: 'last_used_at' },
} as const;

/** The keys of the rows that are alike and beyond a limit: the oldest, and never the one that was just made. */
export async function surplusOf<Table extends keyof typeof bounded>(
  transaction: Kysely<Tables>,
  table: Table,
  which: Partial<Record<keyof Tables[Table], string | null>>,
  { limit, newest }: { readonly limit: number; readonly newest?: string },
): Promise<string[]> {
  const { key, time } = bounded[table];
  const alike = Object.entries<string | null | undefined>(which).map(([column, value]) =>
    value === null ? sql`${sql.ref(column)} is null` : sql`${sql.ref(column)} = ${value}`,
  );
  const { rows } = await sql<{ readonly key: string }>`select ${sql.ref(key)} as key
    from ${sql.table(table)} where ${sql.join(alike, sql` and `)}
    order by ${sql.ref(time)} desc`.execute(transaction);
  const surplus = rows.slice(limit).map((row) => row.key);
  return surplus.filter((each) => each !== newest);
}
