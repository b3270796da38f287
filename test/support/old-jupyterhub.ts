import { hash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { afterAll } from 'vitest';
import { createUserNameRules } from '../../src/identity/authentication/user-name-rules.ts';
import { createScopeCatalogue } from '../../src/identity/rbac/scope-definitions.ts';
import { Secret } from '../../src/platform/config/secret.ts';
import { createSealer } from '../../src/platform/crypto/sealer.ts';
import type { HubDatabase } from '../../src/platform/store/database.ts';
import { openOldDatabase } from '../../src/platform/store/old-database.ts';
import { type ImportRules, planImport } from '../../src/workloads/jupyterhub/import-plan.ts';
import { importPlan } from '../../src/workloads/jupyterhub/import-store.ts';
import { readOldHub } from '../../src/workloads/jupyterhub/old-hub.ts';
import { readNativePasswords } from '../../src/workloads/jupyterhub/old-passwords.ts';
import { usePostgres } from './databases.ts';

export const hashOf = (token: string) => `sha512:1:salt:${hash('sha512', `salt${token}`)}`;

const common = `
  create table alembic_version (version_num varchar(32) not null);
  create table groups (id integer primary key, name varchar(255));
  create table user_group_map (user_id integer, group_id integer);
  insert into groups (id, name) values (1, 'course');
  insert into user_group_map values (1, 1);`;

/** As JupyterHub 1.5 has them, as far as they are read. */
export const tablesOf15 = `${common}
  insert into alembic_version values ('4dc2d5a8c53c');
  create table users (id integer primary key, name varchar(255), admin boolean, created timestamp, last_activity timestamp);
  create table services (id integer primary key, name varchar(255), admin boolean);
  create table spawners (id integer primary key, user_id integer, name varchar(255), state text, started timestamp, last_activity timestamp);
  create table api_tokens (id integer primary key, user_id integer, service_id integer, hashed varchar(255), prefix varchar(16), created timestamp, expires_at timestamp, last_activity timestamp, note varchar(1023));
  insert into users values (1, 'ada', true, '2020-01-02 03:04:05.678901', null), (2, 'bob', false, null, null);
  insert into services values (1, 'wiki', true);
  insert into spawners values (1, 1, '', null, null, null);
  insert into api_tokens values
    (1, 1, null, '${hashOf('ada-token')}', 'ada-', '2020-01-02 03:04:05', null, null, 'mine'),
    (2, 77, null, '${hashOf('lost')}', 'lost', null, null, null, 'of nobody'),
    (3, 2, null, '${hashOf('late')}', 'late', null, '2020-01-02 03:04:05', null, 'too late'),
    (4, null, 1, '${hashOf('wiki-token')}', 'wiki', null, null, null, '');`;

/** As JupyterHub 2.3 has them, as far as they are read: what a token may is what its roles allow. */
export const tablesOf23 = `${common}
  insert into alembic_version values ('833da8570507');
  create table users (id integer primary key, name varchar(255), admin boolean, created timestamp, last_activity timestamp);
  create table services (id integer primary key, name varchar(255), admin boolean);
  create table roles (id integer primary key, name varchar(255), description varchar(1023), scopes text);
  create table user_role_map (user_id integer, role_id integer);
  create table group_role_map (group_id integer, role_id integer);
  create table service_role_map (service_id integer, role_id integer);
  create table api_token_role_map (api_token_id integer, role_id integer);
  create table spawners (id integer primary key, user_id integer, name varchar(255), state text, started timestamp, last_activity timestamp);
  create table api_tokens (id integer primary key, user_id integer, service_id integer, hashed varchar(255), prefix varchar(16), client_id varchar(255), session_id varchar(255), created timestamp, expires_at timestamp, last_activity timestamp, note varchar(1023));
  insert into users values (1, 'ada', true, null, null), (2, 'bob', false, null, null);
  insert into roles values (1, 'user', '', '["self"]'), (2, 'token', '', '["inherit"]'), (3, 'reader', 'Reads.', '["read:users!user=bob"]');
  insert into user_role_map values (1, 1), (2, 1), (2, 3);
  insert into api_tokens values
    (1, 1, null, '${hashOf('ada-token')}', 'ada-', 'jupyterhub', null, null, null, null, 'mine'),
    (2, 2, null, '${hashOf('bob-token')}', 'bob-', 'jupyterhub', null, null, null, null, 'reads'),
    (3, 2, null, '${hashOf('bare-token')}', 'bare', 'jupyterhub', null, null, null, null, 'may nothing');
  insert into api_token_role_map values (1, 2), (2, 3);`;

/** As JupyterHub 5.4 has them, as far as they are read. */
export const tablesOf54 = `${common}
  insert into alembic_version values ('4621fec11365');
  alter table groups add column properties text;
  create table users (id integer primary key, name varchar(255), admin boolean, created timestamp, last_activity timestamp);
  create table services (id integer primary key, name varchar(255), admin boolean, url varchar(2047), from_config boolean, oauth_client_id varchar(255), oauth_client_allowed_scopes text, oauth_no_confirm boolean, info text, display boolean, command text);
  create table oauth_clients (id integer primary key, identifier varchar(255), description varchar(1023), secret varchar(255), redirect_uri varchar(1023), allowed_scopes text);
  create table roles (id integer primary key, name varchar(255), description varchar(1023), scopes text, managed_by_auth boolean);
  create table user_role_map (user_id integer, role_id integer, managed_by_auth boolean);
  create table group_role_map (group_id integer, role_id integer, managed_by_auth boolean);
  create table service_role_map (service_id integer, role_id integer, managed_by_auth boolean);
  create table spawners (id integer primary key, user_id integer, name varchar(255), state text, started timestamp, last_activity timestamp);
  create table shares (id integer primary key, spawner_id integer, owner_id integer, user_id integer, group_id integer, scopes text, created_at timestamp, expires_at timestamp);
  create table share_codes (id integer primary key);
  create table api_tokens (id integer primary key, user_id integer, service_id integer, hashed varchar(255), prefix varchar(16), client_id varchar(255), session_id varchar(255), created timestamp, expires_at timestamp, last_activity timestamp, note varchar(1023), scopes text);
  insert into users values (1, 'ada', true, null, null), (2, 'bob', false, null, null);
  insert into services values
    (1, 'robot', false, 'http://127.0.0.1:1', false, 'service-robot', '["read:users!user=bob"]', true, '{"title": "Robot"}', false, null),
    (2, 'runner', false, null, false, null, null, null, null, null, '["run"]'),
    (3, 'cloud', false, 'http://169.254.169.254/', false, null, null, null, null, null, '[]'),
    (4, 'gone', false, null, true, null, null, null, null, null, null);
  insert into oauth_clients values (1, 'service-robot', '', 'sha512:1:salt:00', 'https://robot.example.org/back', '[]');
  insert into roles values (1, 'user', '', '["self"]', false), (2, 'admin', '', '["admin-ui"]', false), (3, 'helper', 'Helps.', '["servers!server=Bob/gpu box", "custom:none:here"]', false);
  insert into user_role_map values (1, 2, false), (2, 1, false), (2, 3, false);
  insert into group_role_map values (1, 2, false);
  insert into spawners values
    (1, 1, '', '{"pod_name": "jupyter-ada---1a2b3c4d", "pvc_name": "claim-ada---1a2b3c4d"}', null, null),
    (2, 2, 'gpu box', '{"pvc_name": "claim-bob--gpu"}', null, null),
    (3, 2, 'gpu-box', '{"pvc_name": "../pods/other"}', null, null);
  insert into shares values
    (1, 1, 1, 2, null, '["access:servers!server=ada/"]', '2025-01-02 03:04:05', null),
    (2, 2, 2, null, 1, '["access:servers!server=bob/gpu box"]', null, null),
    (3, 3, 2, 1, null, '["access:servers!server=bob/gpu-box"]', null, '2020-01-02 03:04:05');
  insert into share_codes values (1);
  insert into api_tokens values
    (1, 2, null, '${hashOf('bob-token')}', 'bob-', 'jupyterhub', null, null, null, null, 'mine', '["read:users!user=bob"]'),
    (2, 2, null, 'pbkdf2:1:2:3', 'bob-', 'jupyterhub', null, null, null, null, 'odd', '[]'),
    (3, 2, null, '${hashOf('of a login')}', 'of a', 'jupyterhub', 'abc', null, null, null, '', '[]'),
    (4, null, 1, '${hashOf('robot-token')}', 'robo', 'jupyterhub', null, null, null, null, 'from config', '["inherit"]'),
    (5, null, 4, '${hashOf('gone-token')}', 'gone', 'jupyterhub', null, null, null, null, 'from config', '["inherit"]');
  insert into service_role_map values (1, 3, false);`;

/** As JupyterHub 4.1 has them: those of 5.4 before shares, and before authenticators managed roles. */
export const tablesOf41 = `${tablesOf54}
  update alembic_version set version_num = '3c2384c5aae1';
  drop table shares;
  drop table share_codes;
  alter table roles drop column managed_by_auth;
  alter table user_role_map drop column managed_by_auth;
  alter table group_role_map drop column managed_by_auth;
  alter table service_role_map drop column managed_by_auth;`;

export const sealer = createSealer([new Secret('k'.repeat(32))], 'second-factor');

export const rules: ImportRules = {
  userNames: createUserNameRules({ username_map: { bob: 'robert' }, username_pattern: '' }),
  catalogue: createScopeCatalogue({}),
  configured: { groups: [], roles: [], serviceNames: ['wiki'], claims: ['claim-{username}'] },
};

/** As NativeAuthenticator has it; the password of Bob is `correct horse battery`. */
export const nativePasswords = (blob: string) => `
  create table users_info (id integer primary key, username varchar(128), password ${blob}, is_authorized boolean, has_2fa boolean, otp_secret varchar(16));
  insert into users_info values
    (1, 'bob', cast('$2b$04$f9xDMPcpXAW.ovPp7pAs/eFJQwJsP5fAHqML6mI/uABJjix7ZIW5q' as ${blob}), true, true, 'JBSWY3DPEHPK3PXP'),
    (2, 'dora', cast('$2b$04$f9xDMPcpXAW.ovPp7pAs/eFJQwJsP5fAHqML6mI/uABJjix7ZIW5q' as ${blob}), true, false, null),
    (3, 'eve', cast('$2b$04$f9xDMPcpXAW.ovPp7pAs/eFJQwJsP5fAHqML6mI/uABJjix7ZIW5q' as ${blob}), false, false, null);`;

/** Databases of a JupyterHub, and what of them is taken over into a new one of the hub. */
export function useOldJupyterHubs(
  open: () => Promise<HubDatabase>,
  dialect: HubDatabase['dialect'],
) {
  const directory = mkdtempSync(join(tmpdir(), 'old-'));
  afterAll(() => rmSync(directory, { recursive: true }));
  const postgres = dialect === 'postgres' ? usePostgres() : undefined;

  async function makeOld(statements: string): Promise<string> {
    if (postgres === undefined) {
      using made = new DatabaseSync(join(mkdtempSync(join(directory, 'each-')), 'old.sqlite'));
      made.exec(statements);
      return `sqlite:///${made.location()}`;
    }
    const url = await postgres().createEmptyDatabase();
    const client = new pg.Client(url);
    await client.connect();
    await client.query(statements);
    await client.end();
    return url.replace(/^postgres(ql)?:/, 'postgresql+psycopg2:');
  }

  async function take(statements: string, { configured } = rules) {
    const url = await makeOld(statements);
    await using old = await openOldDatabase(url, { directory, setting: '--database' });
    const passwords = old.has('users_info') ? await readNativePasswords(old) : [];
    const plan = planImport(await readOldHub(old, Date.now()), { ...rules, configured }, passwords);
    const database = await open();
    const options = { dryRun: false, update: false, sealer };
    const { counts, given } = await importPlan(database, plan, options);
    const volumes = () => database.kysely.selectFrom('user_volumes').selectAll().execute();
    const rows = async (table: 'users' | 'servers' | 'shares' | 'access_tokens' | 'roles') =>
      database.kysely.selectFrom(table).selectAll().execute();
    return { plan, database, counts, given, rows, volumes };
  }

  return { directory, makeOld, take };
}
