import type { Migration } from '../migration.ts';

/** With which token another one was made, so that it ends with that one. */
export const migration0005: Migration = {
  name: '0005-token-makers',
  async up(database) {
    const { schema } = database;
    await schema.alterTable('access_tokens').addColumn('made_by', 'text').execute();
    await schema
      .createIndex('access_tokens_made_by')
      .on('access_tokens')
      .column('made_by')
      .execute();
  },
};
