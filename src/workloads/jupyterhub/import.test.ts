import { hash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { afterAll, expect, test } from 'vitest';
import { describeEachDatabase, usePostgres } from '../../../test/support/databases.ts';
import { createPasswordHasher } from '../../identity/authentication/password-hash.ts';
import { createUserNameRules } from '../../identity/authentication/user-name-rules.ts';
import { createImportedTokenStore } from '../../identity/oauth/tokens/imported-token-store.ts';
import { createScopeCatalogue } from '../../identity/rbac/scope-definitions.ts';
import { createGroupStore } from '../../identity/users/group-store.ts';
import { createPasswordCredentialStore } from '../../identity/users/password-credential-store.ts';
import { createSecondFactorStore } from '../../identity/users/second-factor-store.ts';
import { createUserStore } from '../../identity/users/user-store.ts';
import { Secret } from '../../platform/config/secret.ts';
import { createSealer } from '../../platform/crypto/sealer.ts';
import { openOldDatabase } from '../../platform/store/old-database.ts';
import { type ImportRules, planImport } from './import-plan.ts';
import { importPlan } from './import-store.ts';
import { readOldHub } from './old-hub.ts';
import { readNativePasswords } from './old-passwords.ts';

const hashOf = (token: string) => `sha512:1:salt:${hash('sha512', `salt${token}`)}`;

const common = `
  create table alembic_version (version_num varchar(32) not null);
  create table groups (id integer primary key, name varchar(255));
  create table user_group_map (user_id integer, group_id integer);
  insert into groups (id, name) values (1, 'course');
  insert into user_group_map values (1, 1);`;

/** As JupyterHub 1.5 has them, as far as they are read. */
const tablesOf15 = `${common}
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

/** As JupyterHub 5.4 has them, as far as they are read. */
const tablesOf54 = `${common}
  insert into alembic_version values ('4621fec11365');
  alter table groups add column properties text;
  create table users (id integer primary key, name varchar(255), admin boolean, created timestamp, last_activity timestamp);
  create table services (id integer primary key, name varchar(255), admin boolean, url varchar(2047), from_config boolean);
  create table roles (id integer primary key, name varchar(255), description varchar(1023), scopes text, managed_by_auth boolean);
  create table user_role_map (user_id integer, role_id integer, managed_by_auth boolean);
  create table group_role_map (group_id integer, role_id integer, managed_by_auth boolean);
  create table service_role_map (service_id integer, role_id integer, managed_by_auth boolean);
  create table spawners (id integer primary key, user_id integer, name varchar(255), state text, started timestamp, last_activity timestamp);
  create table shares (id integer primary key, spawner_id integer, owner_id integer, user_id integer, group_id integer, scopes text, created_at timestamp, expires_at timestamp);
  create table share_codes (id integer primary key);
  create table api_tokens (id integer primary key, user_id integer, service_id integer, hashed varchar(255), prefix varchar(16), client_id varchar(255), session_id varchar(255), created timestamp, expires_at timestamp, last_activity timestamp, note varchar(1023), scopes text);
  insert into users values (1, 'ada', true, null, null), (2, 'bob', false, null, null);
  insert into services values (1, 'robot', false, 'http://127.0.0.1:1', false);
  insert into roles values (1, 'user', '', '["self"]', false), (2, 'admin', '', '["admin-ui"]', false), (3, 'helper', 'Helps.', '["servers!server=Bob/gpu box", "custom:none:here"]', false);
  insert into user_role_map values (1, 2, false), (2, 1, false), (2, 3, false);
  insert into group_role_map values (1, 2, false);
  insert into spawners values (1, 1, '', null, null, null), (2, 2, 'gpu box', null, null, null), (3, 2, 'gpu-box', null, null, null);
  insert into shares values
    (1, 1, 1, 2, null, '["access:servers!server=ada/"]', '2025-01-02 03:04:05', null),
    (2, 2, 2, null, 1, '["access:servers!server=bob/gpu box"]', null, null),
    (3, 3, 2, 1, null, '["access:servers!server=bob/gpu-box"]', null, '2020-01-02 03:04:05');
  insert into share_codes values (1);
  insert into api_tokens values
    (1, 2, null, '${hashOf('bob-token')}', 'bob-', 'jupyterhub', null, null, null, null, 'mine', '["read:users!user=bob"]'),
    (2, 2, null, 'pbkdf2:1:2:3', 'bob-', 'jupyterhub', null, null, null, null, 'odd', '[]'),
    (3, 2, null, '${hashOf('of a login')}', 'of a', 'jupyterhub', 'abc', null, null, null, '', '[]');`;

const sealer = createSealer([new Secret('k'.repeat(32))], 'second-factor');

const rules: ImportRules = {
  userNames: createUserNameRules({ username_map: { bob: 'robert' }, username_pattern: '' }),
  catalogue: createScopeCatalogue({}),
  configured: { groups: [], roles: [], serviceNames: ['wiki'] },
};

/** As NativeAuthenticator has it; the password of Bob is `correct horse battery`. */
const nativePasswords = (blob: string) => `
  create table users_info (id integer primary key, username varchar(128), password ${blob}, is_authorized boolean, has_2fa boolean, otp_secret varchar(16));
  insert into users_info values
    (1, 'bob', cast('$2b$04$f9xDMPcpXAW.ovPp7pAs/eFJQwJsP5fAHqML6mI/uABJjix7ZIW5q' as ${blob}), true, true, 'JBSWY3DPEHPK3PXP'),
    (2, 'dora', cast('$2b$04$f9xDMPcpXAW.ovPp7pAs/eFJQwJsP5fAHqML6mI/uABJjix7ZIW5q' as ${blob}), true, false, null),
    (3, 'eve', cast('$2b$04$f9xDMPcpXAW.ovPp7pAs/eFJQwJsP5fAHqML6mI/uABJjix7ZIW5q' as ${blob}), false, false, null);`;

describeEachDatabase('what a JupyterHub had', (open, dialect) => {
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
    const rows = async (table: 'users' | 'servers' | 'shares' | 'access_tokens' | 'roles') =>
      database.kysely.selectFrom(table).selectAll().execute();
    return { plan, database, counts, given, rows };
  }

  test('1.x is there, with tokens that do all that their owners may', async () => {
    const { plan, database, counts, rows } = await take(tablesOf15);
    expect(plan.left).toEqual([{ what: '1 tokens', why: 'their users or services are gone' }]);
    expect(counts.tokens).toMatchObject({ found: 2, added: 2 });
    expect(await rows('users')).toMatchObject([
      { name: 'ada', admin: 1, invited: 1, created_at: Date.UTC(2020, 0, 2, 3, 4, 5, 678) },
      { name: 'robert', admin: 0 },
    ]);
    const { adopt } = createImportedTokenStore(database);
    expect(await adopt('ada-token', 'new')).toBe(true);
    expect(await adopt('ada-token', 'new')).toBe(false);
    const found = await database.kysely
      .selectFrom('access_tokens')
      .selectAll()
      .where('token_hash', '=', 'new')
      .execute();
    expect(found).toMatchObject([{ note: 'mine', scopes: '["inherit"]', kind: 'user' }]);
    expect(plan.assignments).toEqual([
      { role: 'admin', holder: { kind: 'service', name: 'wiki' } },
    ]);

    const again = await importPlan(database, plan, { dryRun: false, update: true, sealer });
    for (const count of Object.values(again.counts))
      expect(count).toMatchObject({ added: 0, changed: 0, removed: 0 });

    await database.kysely.deleteFrom('access_tokens').where('note', '=', 'mine').execute();
    for (const update of [false, true]) {
      const { counts } = await importPlan(database, plan, { dryRun: false, update, sealer });
      expect(counts.tokens, 'revoked here').toMatchObject({ found: 2, added: 0 });
    }
  });

  test('members of a group of the configuration come along before the first start', async () => {
    const group = { name: 'course', users: ['robert'], properties: {} };
    const configured = { ...rules.configured, groups: [group] };
    const { database, counts } = await take(tablesOf15, { ...rules, configured });
    expect(counts.members).toMatchObject({ found: 1, added: 1 });
    // The hub's start, which has it be one of the configuration.
    await createGroupStore(database).syncConfigured([group]);
    const members = await database.kysely.selectFrom('group_members').select('origin').execute();
    expect(members.map(({ origin }) => origin).toSorted()).toEqual(['api', 'config']);
  });

  test('5.x is there with its shares, and what cannot be is said', async () => {
    const { plan, counts, rows } = await take(tablesOf54);
    expect(plan.left.map(({ what }) => what)).toEqual([
      'service robot, with its tokens and roles',
      'scope custom:none:here of the role helper',
      'token "odd" of user robert',
      '1 links that share servers',
    ]);
    expect(plan.changed.map(({ what }) => what)).toEqual([
      'user bob → robert',
      'server robert/gpu box → robert/gpu-box-2',
    ]);
    expect(counts.servers).toMatchObject({ found: 2, added: 2 });
    expect((await rows('servers')).map(({ name }) => name).sort()).toEqual([
      '',
      'gpu-box',
      'gpu-box-2',
    ]);
    expect((await rows('shares')).map(({ scopes }) => scopes)).toEqual([
      '["access:servers"]',
      '["access:servers"]',
    ]);
    expect(
      (await rows('roles')).map(({ name, scopes }) => [name, name === 'helper' && scopes]).sort(),
    ).toEqual([
      ['admin', false],
      ['helper', '["servers!server=robert/gpu-box-2"]'],
    ]);
    expect(plan.assignments).toEqual([
      { role: 'helper', holder: { kind: 'user', name: 'robert' } },
      { role: 'admin', holder: { kind: 'group', name: 'course' } },
    ]);
    expect((await rows('access_tokens')).map(({ scopes }) => scopes)).toEqual([
      '["read:users!user=robert"]',
    ]);
  });

  test('gives nobody more than it gave, and says what it gave', async () => {
    const database = await open();
    const { kysely } = database;
    const admin = await createUserStore(database).create({ name: 'robert', isAdmin: true });
    await createUserStore(database).create({ name: 'ada', isAdmin: false });
    const made = { description: 'Ours.', origin: 'api' };
    await kysely
      .insertInto('roles')
      .values([
        { ...made, name: 'helper', scopes: '["admin:users"]' },
        { ...made, name: 'same', scopes: '["shares", "read:users"]' },
      ])
      .execute();
    const course = { names: ['course'], memberNames: [], origin: 'api' };
    await createGroupStore(database).createAll(course);

    const blob = dialect === 'postgres' ? 'bytea' : 'blob';
    const url = await makeOld(`${tablesOf54 + nativePasswords(blob)}
      insert into groups values (2, 'lab', '{}');
      insert into user_group_map values (2, 2);
      insert into users values (3, 'root', true, '2020-01-02 03:04:05', null), (4, 'zoe', false, '2020-01-02 03:04:05', null);
      insert into roles values (4, 'same', '', '["read:users", "shares"]', false);
      insert into user_role_map values (4, 4, false), (4, 3, false);
      insert into group_role_map values (2, 4, false), (1, 4, false);`);
    await using old = await openOldDatabase(url, { directory, setting: '--database' });
    const passwords = await readNativePasswords(old);
    const plan = planImport(await readOldHub(old, Date.now()), rules, passwords);
    const rightsOf = async () => ({
      admins: await kysely.selectFrom('users').select(['name', 'admin']).orderBy('name').execute(),
      roles: await kysely.selectFrom('roles').selectAll().where('name', '<>', 'admin').execute(),
      course: await kysely
        .selectFrom('group_members')
        .innerJoin('groups', 'groups.id', 'group_id')
        .select('user_id')
        .where('name', '=', 'course')
        .execute(),
      ofRobert: [
        ...(await kysely
          .selectFrom('access_tokens')
          .select('id')
          .where('user_id', '=', admin.id)
          .execute()),
        ...(await kysely.selectFrom('password_credentials').select('user_id').execute()),
      ].length,
    });
    const before = await rightsOf();
    const update = { dryRun: false, update: true, sealer };
    for (const run of [{ ...update, update: false }, update]) {
      const { given, left, counts } = await importPlan(database, plan, run);
      expect(given).toEqual(
        run.update
          ? []
          : ['user root: administrator', 'user zoe: role same', 'group lab: role same'],
      );
      expect(left.map(({ what }) => what)).toEqual([
        'group course, with its members, roles and shares',
        'role helper, and who holds it',
        'user robert, with tokens and password',
        'administrator ada',
      ]);
      expect(counts.roles).toMatchObject({ added: 0, changed: 0 });
    }
    const after = await rightsOf();
    expect(after).toMatchObject({ roles: before.roles, course: [] });
    expect(after.ofRobert).toBe(1);
    expect(after.admins.filter(({ name }) => name === 'ada')).toEqual([{ name: 'ada', admin: 0 }]);
    const [entry] = (await kysely.selectFrom('audit_arrivals').select('entry').execute()).slice(-1);
    expect(entry?.entry).toContain('group lab: role same');

    // Of what was taken over, `update` goes on to follow the JupyterHub.
    const late = (scope: string) => {
      const role = { name: 'late', description: '', scopes: [scope] };
      return { ...plan, roles: [role], assignments: [] };
    };
    await importPlan(database, late('read:users'), update);
    const held = await importPlan(database, late('users'), { ...update, update: false });
    expect(held.left.map(({ what }) => what)).toContain('role late, and who holds it');
    expect((await importPlan(database, late('users'), update)).given).toEqual([
      'role late: ["users"]',
    ]);
  });

  test('passwords and second factors of NativeAuthenticator go on working', async () => {
    const blob = dialect === 'postgres' ? 'bytea' : 'blob';
    const { plan, database, rows } = await take(tablesOf54 + nativePasswords(blob));
    expect(plan.left).toContainEqual(
      expect.objectContaining({
        what: 'password of eve',
        why: 'no administrator has let this user in',
      }),
    );
    const names = (await rows('users')).map(({ name }) => name).sort();
    expect(names).toEqual(['ada', 'dora', 'robert']);
    const stored = await createPasswordCredentialStore(database).findPasswordHash('robert');
    const { verify } = createPasswordHasher();
    expect(await verify('correct horse battery', stored?.passwordHash)).toEqual({
      matches: true,
      needsRehash: true,
    });
    const bob = await createUserStore(database).getByName('robert');
    const factor = await createSecondFactorStore(database, { sealer }).find(bob.id);
    expect(factor).toEqual({ totpSecret: 'JBSWY3DPEHPK3PXP' });
  });
});
