import type { Migration } from '../migration.ts';

/** For which authenticator an account was made before its owner came. */
export const migration0004: Migration = {
  name: '0004-account-authenticators',
  async up(database) {
    await database.schema.alterTable('users').addColumn('made_for', 'text').execute();
  },
};
