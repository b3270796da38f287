import { type ColumnDefinitionBuilder, type Kysely, sql } from 'kysely';
import type { Migration } from '../migration.ts';

/** Creates every table of the first release. */
export const migration0001: Migration = {
  name: '0001-initial',
  async up(database, dialect) {
    // PostgreSQL would sort names by its own locale; "C" sorts them by bytes, as SQLite does.
    const name = dialect === 'postgres' ? sql`text collate "C"` : sql`text`;
    const context = { database, name };
    await createUsers(context);
    await createIdentities(context);
    await createGroupsAndRoles(context);
    await createSessionsAndTokens(context);
    await createServers(context);
    await createSingleValues(context);
  },
};

interface Context {
  readonly database: Kysely<unknown>;
  readonly name: ReturnType<typeof sql>;
}

const key = (column: ColumnDefinitionBuilder) => column.primaryKey();
const required = (column: ColumnDefinitionBuilder) => column.notNull();
const ofUser = (column: ColumnDefinitionBuilder) =>
  column.notNull().references('users.id').onDelete('cascade');

async function createUsers({ database, name }: Context): Promise<void> {
  const { schema } = database;
  await schema
    .createTable('users')
    .addColumn('id', 'text', key)
    .addColumn('name', name, (column) => column.notNull().unique())
    .addColumn('admin', 'integer', required)
    .addColumn('invited', 'integer', required)
    .addColumn('created_at', 'bigint', required)
    .addColumn('last_activity_at', 'bigint')
    .execute();
  await schema
    .createIndex('users_last_activity_at')
    .on('users')
    .column('last_activity_at')
    .execute();

  await schema
    .createTable('password_credentials')
    .addColumn('user_id', 'text', (column) => ofUser(column).primaryKey())
    .addColumn('password_hash', 'text', required)
    .addColumn('must_change', 'integer', required)
    .addColumn('updated_at', 'bigint', required)
    .execute();

  await schema
    .createTable('second_factors')
    .addColumn('user_id', 'text', (column) => ofUser(column).primaryKey())
    .addColumn('totp_secret_encrypted', 'text', required)
    .addColumn('confirmed_at', 'bigint')
    .addColumn('recovery_code_hashes', 'text', required)
    .addColumn('last_step', 'bigint')
    .execute();

  await schema
    .createTable('invitations')
    .addColumn('id', 'text', key)
    .addColumn('secret_hash', 'text', (column) => column.notNull().unique())
    .addColumn('purpose', 'text', required)
    .addColumn('user_id', 'text', ofUser)
    .addColumn('created_by', 'text', required)
    .addColumn('created_at', 'bigint', required)
    .addColumn('expires_at', 'bigint', required)
    .addColumn('used_at', 'bigint')
    .execute();
  await schema.createIndex('invitations_user_id').on('invitations').column('user_id').execute();
  await schema
    .createIndex('invitations_expires_at')
    .on('invitations')
    .column('expires_at')
    .execute();
}

async function createIdentities({ database }: Context): Promise<void> {
  const { schema } = database;
  await schema
    .createTable('identities')
    .addColumn('id', 'text', key)
    .addColumn('user_id', 'text', ofUser)
    .addColumn('authenticator', 'text', required)
    .addColumn('issuer', 'text', required)
    .addColumn('subject', 'text', required)
    .addColumn('display', 'text')
    .addColumn('created_at', 'bigint', required)
    .addUniqueConstraint('identities_who', ['authenticator', 'issuer', 'subject'])
    .execute();
  await schema.createIndex('identities_user_id').on('identities').column('user_id').execute();

  await schema
    .createTable('auth_states')
    .addColumn('identity_id', 'text', (column) =>
      column.primaryKey().references('identities.id').onDelete('cascade'),
    )
    .addColumn('encrypted', 'text', required)
    .addColumn('refreshed_at', 'bigint', required)
    .execute();
}

async function createGroupsAndRoles({ database, name }: Context): Promise<void> {
  const { schema } = database;
  await schema
    .createTable('groups')
    .addColumn('id', 'text', key)
    .addColumn('name', name, (column) => column.notNull().unique())
    .addColumn('properties', 'text', required)
    .addColumn('origin', 'text', required)
    .addColumn('created_at', 'bigint', required)
    .execute();

  await schema
    .createTable('group_members')
    .addColumn('group_id', 'text', (column) =>
      column.notNull().references('groups.id').onDelete('cascade'),
    )
    .addColumn('user_id', 'text', ofUser)
    .addColumn('origin', 'text', required)
    .addPrimaryKeyConstraint('group_members_key', ['group_id', 'user_id'])
    .execute();
  await schema.createIndex('group_members_user_id').on('group_members').column('user_id').execute();

  await schema
    .createTable('roles')
    .addColumn('name', name, key)
    .addColumn('description', 'text', required)
    .addColumn('scopes', 'text', required)
    .addColumn('origin', 'text', required)
    .execute();

  // A role may be given to a service of the configuration, which no table holds: the subject is a
  // name, and the stores of users and groups remove or rename it with its subject.
  await schema
    .createTable('role_assignments')
    .addColumn('role_name', name, (column) =>
      column.notNull().references('roles.name').onDelete('cascade').onUpdate('cascade'),
    )
    .addColumn('subject_kind', 'text', required)
    .addColumn('subject_name', name, required)
    .addColumn('origin', 'text', required)
    .addPrimaryKeyConstraint('role_assignments_key', ['role_name', 'subject_kind', 'subject_name'])
    .execute();
  await schema
    .createIndex('role_assignments_subject')
    .on('role_assignments')
    .columns(['subject_kind', 'subject_name'])
    .execute();
}

async function createSessionsAndTokens({ database }: Context): Promise<void> {
  const { schema } = database;
  await schema
    .createTable('login_sessions')
    .addColumn('session_id', 'text', key)
    .addColumn('user_id', 'text', ofUser)
    .addColumn('authenticator', 'text', required)
    .addColumn('identity_id', 'text', (column) =>
      column.references('identities.id').onDelete('set null'),
    )
    .addColumn('created_at', 'bigint', required)
    .addColumn('last_seen_at', 'bigint', required)
    .addColumn('expires_at', 'bigint', required)
    .addColumn('address', 'text', required)
    .addColumn('user_agent', 'text', required)
    .addColumn('upstream_session_id', 'text')
    .addColumn('id_token_encrypted', 'text')
    .execute();

  await schema
    .createTable('authorization_codes')
    .addColumn('code_hash', 'text', key)
    .addColumn('client_id', 'text', required)
    .addColumn('user_id', 'text', ofUser)
    .addColumn('session_id', 'text', required)
    .addColumn('redirect_uri', 'text')
    .addColumn('scopes', 'text', required)
    .addColumn('code_challenge', 'text')
    .addColumn('created_at', 'bigint', required)
    .addColumn('expires_at', 'bigint', required)
    .addColumn('used_at', 'bigint')
    .execute();

  await schema
    .createTable('access_tokens')
    .addColumn('id', 'text', key)
    .addColumn('token_hash', 'text', (column) => column.notNull().unique())
    .addColumn('kind', 'text', required)
    .addColumn('user_id', 'text', (column) => column.references('users.id').onDelete('cascade'))
    .addColumn('service_name', 'text')
    .addColumn('server_id', 'text')
    .addColumn('client_id', 'text')
    .addColumn('session_id', 'text')
    .addColumn('code_hash', 'text')
    .addColumn('scopes', 'text', required)
    .addColumn('note', 'text', required)
    .addColumn('created_at', 'bigint', required)
    .addColumn('last_used_at', 'bigint')
    .addColumn('expires_at', 'bigint')
    .execute();

  const indexes = {
    login_sessions: ['user_id', 'identity_id', 'expires_at', 'upstream_session_id'],
    authorization_codes: ['user_id', 'session_id', 'client_id', 'expires_at'],
    access_tokens: [
      'user_id',
      'service_name',
      'server_id',
      'client_id',
      'session_id',
      'code_hash',
      'expires_at',
    ],
  };
  for (const [table, columns] of Object.entries(indexes)) {
    for (const column of columns) {
      await schema.createIndex(`${table}_${column}`).on(table).column(column).execute();
    }
  }
}

async function createServers({ database, name }: Context): Promise<void> {
  const { schema } = database;
  await schema
    .createTable('servers')
    .addColumn('id', 'text', key)
    .addColumn('user_id', 'text', ofUser)
    .addColumn('name', name, required)
    .addColumn('display_name', 'text')
    .addColumn('state', 'text', required)
    .addColumn('url', 'text')
    .addColumn('spawner_state', 'text', required)
    .addColumn('user_options', 'text', required)
    .addColumn('failure', 'text')
    .addColumn('created_at', 'bigint', required)
    .addColumn('started_at', 'bigint')
    .addColumn('last_activity_at', 'bigint')
    .addUniqueConstraint('servers_of_user', ['user_id', 'name'])
    .execute();
  await schema.createIndex('servers_state').on('servers').column('state').execute();

  await schema
    .createTable('managed_processes')
    .addColumn('owner', 'text', key)
    .addColumn('pid', 'bigint', required)
    .addColumn('start_time', 'text', required)
    .addColumn('started_at', 'bigint', required)
    .execute();
}

async function createSingleValues({ database, name }: Context): Promise<void> {
  const { schema } = database;
  await schema
    .createTable('settings')
    .addColumn('key', 'text', key)
    .addColumn('value', 'text', required)
    .execute();

  await schema
    .createTable('keyv')
    .addColumn('key', name, key)
    .addColumn('value', 'text', required)
    .addColumn('expires_at', 'bigint')
    .execute();
  await schema.createIndex('keyv_expires_at').on('keyv').column('expires_at').execute();
}
