import { sql } from 'kysely';
import type { Secret } from '../config/secret.ts';
import { createSealer } from '../crypto/sealer.ts';
import type { HubDatabase } from './database.ts';

/** A column of which a key of the hub is needed to read the values. */
export interface SealedColumn {
  readonly table: string;
  /** The primary key. */
  readonly id: string;
  readonly column: string;
  readonly purpose: string;
  readonly contextOf: (id: string) => string;
  /** Begins the keys of those rows that are sealed for the purpose. */
  readonly prefix?: string;
}

const pageRows = 500;

/** Seals with the first secret what former ones have sealed; tells how many values. Each is changed only as it was read. */
export async function sealColumnsAgain(
  { kysely }: Pick<HubDatabase, 'kysely'>,
  {
    columns,
    secrets,
  }: { readonly columns: readonly SealedColumn[]; readonly secrets: readonly Secret[] },
): Promise<number> {
  let count = 0;
  for (const { table, id, column, purpose, contextOf, prefix = '' } of columns) {
    const sealer = createSealer(secrets, purpose);
    const [key, value] = [sql.ref<string>(id), sql.ref<string>(column)];
    for (let last = prefix; ; ) {
      const { rows } = await sql<{ id: string; sealed: string }>`
        select ${key} as id, ${value} as sealed from ${sql.table(table)}
        where ${key} > ${last} and ${value} is not null order by ${key} limit ${pageRows}`.execute(
        kysely,
      );
      for (const { id: found, sealed } of rows) {
        const renewed = found.startsWith(prefix)
          ? sealer.renew(sealed, contextOf(found))
          : undefined;
        if (renewed === undefined) continue;
        await sql`update ${sql.table(table)} set ${value} = ${renewed}
          where ${key} = ${found} and ${value} = ${sealed}`.execute(kysely);
        count += 1;
      }
      if (rows.length < pageRows) break;
      last = rows.at(-1)?.id ?? '';
    }
  }
  return count;
}
