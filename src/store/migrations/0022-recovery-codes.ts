import type { Kysely } from 'kysely';
import type { Migration } from '../migration.ts';

interface Before {
  second_factors: { user_id: string; recovery_code_hashes: string };
  recovery_codes: { user_id: string; code_hash: string };
}

/** Recovery codes, which users with passkeys alone have too: hashes, each in a row that goes when it is used. */
export const migration0022: Migration = {
  name: '0022-recovery-codes',
  async up(transaction) {
    const database = transaction as unknown as Kysely<Before>;
    await database.schema
      .createTable('recovery_codes')
      .addColumn('user_id', 'text', (column) =>
        column.notNull().references('users.id').onDelete('cascade'),
      )
      .addColumn('code_hash', 'text', (column) => column.notNull())
      .addPrimaryKeyConstraint('recovery_codes_pkey', ['user_id', 'code_hash'])
      .execute();
    const factors = await database
      .selectFrom('second_factors')
      .select(['user_id', 'recovery_code_hashes'])
      .execute();
    for (const { user_id, recovery_code_hashes } of factors) {
      const hashes = JSON.parse(recovery_code_hashes) as string[];
      const rows = hashes.map((code_hash) => ({ user_id, code_hash }));
      if (rows.length > 0) await database.insertInto('recovery_codes').values(rows).execute();
    }
    await database.schema.alterTable('second_factors').dropColumn('recovery_code_hashes').execute();
  },
};
