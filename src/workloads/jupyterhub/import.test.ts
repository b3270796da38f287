import { expect, test } from 'vitest';
import { describeEachDatabase } from '../../../test/support/databases.ts';
import {
  nativePasswords,
  rules,
  sealer,
  tablesOf15,
  tablesOf23,
  tablesOf41,
  tablesOf54,
  useOldJupyterHubs,
} from '../../../test/support/old-jupyterhub.ts';
import { createPasswordHasher } from '../../identity/authentication/password-hash.ts';
import { createImportedTokenStore } from '../../identity/oauth/tokens/imported-token-store.ts';
import { createGroupStore } from '../../identity/users/group-store.ts';
import { createPasswordCredentialStore } from '../../identity/users/password-credential-store.ts';
import { createSecondFactorStore } from '../../identity/users/second-factor-store.ts';
import { createUserStore } from '../../identity/users/user-store.ts';
import { openOldDatabase } from '../../platform/store/old-database.ts';
import { planImport } from './import-plan.ts';
import { importPlan } from './import-store.ts';
import { readOldHub } from './old-hub.ts';
import { readNativePasswords } from './old-passwords.ts';

describeEachDatabase('what a JupyterHub had', (open, dialect) => {
  const { directory, makeOld, take } = useOldJupyterHubs(open, dialect);

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

  test('2.x is there, with tokens that do what their roles allow', async () => {
    const { plan, counts, rows } = await take(tablesOf23);
    expect(counts.tokens).toMatchObject({ found: 3, added: 3 });
    expect((await rows('access_tokens')).map(({ note, scopes }) => [note, scopes]).sort()).toEqual([
      ['may nothing', '[]'],
      ['mine', '["inherit"]'],
      ['reads', '["read:users!user=robert"]'],
    ]);
    expect(plan.assignments).toEqual([
      { role: 'reader', holder: { kind: 'user', name: 'robert' } },
    ]);
  });

  test('4.x is there like 5.x, without shares', async () => {
    const [of41, of54] = [await take(tablesOf41), await take(tablesOf54)];
    expect(await of41.rows('shares')).toEqual([]);
    expect(of41.plan).toEqual({ ...of54.plan, shares: [], left: of54.plan.left.slice(0, -1) });
  });

  test('5.x is there with its shares, and what cannot be is said', async () => {
    const { plan, counts, rows } = await take(tablesOf54);
    expect(plan.left.map(({ what }) => what)).toEqual([
      'service runner, with its tokens and roles',
      'service cloud, with its tokens and roles',
      'service gone, with its tokens and roles',
      'scope custom:none:here of the role helper',
      'token "odd" of user robert',
      'claim claim-bob--gpu of the server robert/gpu-box-2',
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
      { role: 'helper', holder: { kind: 'service', name: 'robot' } },
    ]);
    expect((await rows('access_tokens')).map(({ scopes }) => scopes).sort()).toEqual([
      '["inherit"]',
      '["read:users!user=robert"]',
    ]);
  });

  test('claims of KubeSpawner 7 are those of the same users and servers', async () => {
    const { volumes } = await take(tablesOf54);
    const source = 'claim-ada---1a2b3c4d';
    expect(await volumes()).toMatchObject([{ server_name: '', volume: 'claim', source }]);

    const ofServers = { ...rules.configured, claims: ['home-{server}'] };
    const {
      volumes: ofEach,
      plan,
      database,
    } = await take(tablesOf54, { ...rules, configured: ofServers });
    const found = await ofEach();
    expect(found.map((row) => [row.server_name, row.volume, row.source]).sort()).toEqual([
      ['', 'home', source],
      ['gpu-box-2', 'home', 'claim-bob--gpu'],
    ]);
    const again = await importPlan(database, plan, { dryRun: false, update: true, sealer });
    expect(again.counts.volumes).toMatchObject({ found: 2, added: 0 });
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
