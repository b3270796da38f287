import { connect, createServer } from 'node:net';
import { Attribute, Change } from 'ldapts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { LoginRequest } from '../../src/plugin/plugin.ts';
import { authenticatorContract, createTestHost } from '../../test/contract/testing.ts';
import { anyRequest } from '../../test/support/plugin-login.ts';
import { hasSlapd, type Slapd, startSlapd } from '../../test/support/slapd.ts';
import { until } from '../../test/support/test-hub.ts';
import plugin from './index.ts';
import { findProblems, optionsSchema } from './options.ts';

const person = (uid: string, more = '') => `
dn: uid=${uid.replaceAll(',', '\\2c')},ou=people,dc=example,dc=org
objectClass: inetOrgPerson
uid: ${uid}
cn: ${uid}
sn: ${uid}
userPassword: password of ${uid}
${more}`;

const group = (name: string, ...members: string[]) => `
dn: cn=${name},ou=groups,dc=example,dc=org
objectClass: groupOfNames
cn: ${name}
${members.map((uid) => `member: uid=${uid},ou=people,dc=example,dc=org`).join('\n')}
`;

const entries = [
  person('ada', 'mail: ada@example.org\n'),
  person('bob'),
  person('odd, name', 'mail: odd@example.org\n'),
  person('twin1', 'mail: twin@example.org\n'),
  person('twin2', 'mail: twin@example.org\n'),
  group('staff', 'ada', 'bob'),
  group('Admins (all)', 'ada'),
].join('\n');

const request: LoginRequest = anyRequest();

const people = 'ou=people,dc=example,dc=org';
const groups = 'ou=groups,dc=example,dc=org';

describe.runIf(hasSlapd())('with a real directory', () => {
  let slapd: Slapd;
  const options: Record<string, unknown> = {};
  beforeAll(async () => {
    slapd = await startSlapd(entries);
    Object.assign(options, {
      url: slapd.ldapsUrl,
      tls_ca: slapd.ca,
      user_search_base: people,
      bind_dn: slapd.bindDn,
      bind_password: slapd.bindPassword,
      group_search_base: groups,
    });
  });
  afterAll(() => slapd[Symbol.asyncDispose]());

  async function create(more: Record<string, unknown> = {}) {
    const host = await createTestHost();
    const given = Object.entries({ ...options, ...more }).filter(
      ([, value]) => value !== undefined,
    );
    const authenticator = await plugin.create(optionsSchema.parse(Object.fromEntries(given)), host);
    const logIn = (username: string, password: string) =>
      authenticator.authenticate(new Map(Object.entries({ username, password })), request);
    return { authenticator, host, logIn };
  }

  const template = {
    user_search_base: undefined,
    bind_dn: undefined,
    bind_password: undefined,
    bind_dn_template: `uid={username},${people}`,
  };

  test.for(
    authenticatorContract({
      plugin,
      options,
      form: {
        valid: { username: 'ada', password: 'password of ada' },
        userName: 'ada',
        wrong: [
          { username: 'ada', password: 'password of bob' },
          { username: 'nobody', password: 'password of ada' },
          { username: 'ada', password: '' },
        ],
        secretField: 'password',
      },
    }),
  )('keeps the contract: $name', ({ run }) => run());

  test.for([
    ['ldaps, by search', () => ({})],
    ['ldaps, by template', () => template],
    ['StartTLS, by search', () => ({ url: slapd.ldapUrl })],
    ['StartTLS, by template', () => ({ ...template, url: slapd.ldapUrl })],
  ] as const)('over %s, people come in with their groups', async ([, more]) => {
    const { logIn } = await create(more());
    expect(await logIn('ada', 'password of ada')).toMatchObject({
      outcome: 'authenticated',
      user: {
        name: 'ada',
        display: 'ada@example.org',
        info: { displayName: 'ada', email: 'ada@example.org', isEmailVerified: true },
        groups: ['staff', 'Admins (all)'],
      },
    });
    expect(await logIn('ada', 'password of bob')).toMatchObject({ reason: 'credentials' });
    expect(await logIn('nobody', 'password of ada')).toMatchObject({ reason: 'credentials' });
    expect(await logIn('ada', '')).toMatchObject({ reason: 'credentials' });
  });

  test.for(['by search', 'by template'])(
    '%s, what is typed is a name and never a query',
    async (how) => {
      const { logIn } = await create(how === 'by search' ? {} : template);
      expect(await logIn('odd, name', 'password of odd, name')).toMatchObject({
        user: { name: 'odd, name' },
      });
      for (const typed of [
        '*',
        'a*',
        'ada)(uid=*',
        '*)(|(uid=ada',
        'ada,ou=people',
        'bob,uid=ada',
        'ada+cn=ada',
      ]) {
        expect([typed, await logIn(typed, 'password of ada')]).toEqual([
          typed,
          { outcome: 'refused', reason: 'credentials' },
        ]);
      }
    },
  );

  test.for(['by search', 'by template'])(
    '%s, a name that only the directory takes for the same has no way in of its own',
    async (how) => {
      const { logIn } = await create(how === 'by search' ? {} : template);
      expect(await logIn('ADA', 'password of ada')).toMatchObject({ outcome: 'authenticated' });
      for (const alias of ['ａｄａ', 'a\u00adda', 'ad\u200ba']) {
        expect([alias, await logIn(alias, 'password of ada')]).toEqual([
          alias,
          { outcome: 'refused', reason: 'credentials' },
        ]);
      }
    },
  );

  test('further attributes can be typed, but not one that two people share', async () => {
    const { logIn, host } = await create({ login_attributes: ['uid', 'mail'] });
    expect(await logIn('ada@example.org', 'password of ada')).toMatchObject({
      user: { name: 'ada' },
    });
    expect(await logIn('twin@example.org', 'password of twin1')).toMatchObject({
      outcome: 'refused',
    });
    expect(host.logged.join()).toContain('more than one entry');
  });

  test('groups decide who may log in and who administers', async () => {
    const { logIn } = await create({ allowed_groups: ['STAFF'], admin_groups: ['Admins (all)'] });
    expect(await logIn('ada', 'password of ada')).toMatchObject({
      user: { allowed: true, admin: true },
    });
    expect(await logIn('bob', 'password of bob')).toMatchObject({
      user: { allowed: true, admin: false },
    });
    expect(await logIn('twin1', 'password of twin1')).toMatchObject({ user: { allowed: false } });
  });

  test('an id that never changes names the person, and without it the login is refused', async () => {
    const { logIn } = await create({ id_attribute: 'entryUUID' });
    const result = await logIn('ada', 'password of ada');
    expect(result).toMatchObject({ user: { subject: expect.stringMatching(/^[0-9a-f-]{36}$/) } });
    const lacking = await create({ id_attribute: 'employeeNumber' });
    expect(await lacking.logIn('ada', 'password of ada')).toMatchObject({
      reason: 'invalid_response',
    });
  });

  test('a certificate of an unknown authority, or for another host, is refused', async () => {
    for (const more of [
      { tls_ca: undefined },
      { tls_ca: undefined, url: slapd.ldapUrl },
      { url: slapd.ldapUrl.replace('127.0.0.1', '127.0.0.2') },
    ]) {
      const { logIn, host } = await create(more);
      await expect(logIn('ada', 'password of ada')).rejects.toThrow();
      expect(host.logged.join()).not.toContain('password of ada');
    }
  });

  test('a person who is gone or has left a group is noticed by a refresh', async () => {
    await using own = await startSlapd(entries);
    const { authenticator, logIn } = await create({
      url: own.ldapsUrl,
      tls_ca: own.ca,
      allowed_groups: ['staff'],
    });
    const login = await logIn('bob', 'password of bob');
    if (login?.outcome !== 'authenticated') throw new Error('bob is not let in');
    const refresh = () => authenticator.refreshUser?.(login.user, request);
    expect(await refresh()).toMatchObject({
      outcome: 'updated',
      user: { groups: ['staff'], allowed: true },
    });
    await own.administer(async (client) => {
      const member = new Attribute({ type: 'member', values: [`uid=bob,${people}`] });
      const change = new Change({ operation: 'delete', modification: member });
      await client.modify(`cn=staff,${groups}`, change);
    });
    expect(await refresh()).toMatchObject({
      outcome: 'updated',
      user: { groups: [], allowed: false },
    });
    await own.administer((client) => client.del(`uid=bob,${people}`));
    expect(await refresh()).toMatchObject({ outcome: 'login_required' });
    await own.stop();
    expect(await refresh()).toMatchObject({ outcome: 'unavailable' });
    expect(authenticator.status?.()).toMatchObject({ state: 'unavailable' });
  });

  test('the next address is asked when one does not answer', async () => {
    const { logIn } = await create({ url: ['ldaps://127.0.0.1:1', slapd.ldapsUrl] });
    expect(await logIn('ada', 'password of ada')).toMatchObject({ outcome: 'authenticated' });
  });

  test("a wrong password of the hub's own account is an error, not a wrong login", async () => {
    const { logIn, host } = await create({ bind_password: 'wrong' });
    await expect(logIn('ada', 'password of ada')).rejects.toThrow('refuses bind_dn');
    expect(host.logged.join()).not.toContain('wrong"');
  });

  test('a directory that accepts and says nothing is given up on', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await until(() => server.listening, 'the silent server listens');
    const { port } = server.address() as { port: number };
    connect(port, '127.0.0.1').destroy();
    const { logIn } = await create({ url: `ldap://127.0.0.1:${port}`, timeout: 0.2 });
    await expect(logIn('ada', 'password of ada')).rejects.toThrow();
    server.close();
  });
});

describe('options that contradict each other are problems', () => {
  const around = {
    name: 'ldap',
    publicUrl: 'http://127.0.0.1/',
    isLoopbackOnly: true,
    trustedLocalAddress: undefined,
    asksForCertificates: false,
    hubTitle: 'Hub',
    directory: '.',
  };
  const good = { url: 'ldaps://directory.example.org', user_search_base: people };

  test.for([
    ['an unencrypted connection', { ...good, url: 'ldap://d', start_tls: false }, 'start_tls'],
    ['another kind of address', { ...good, url: 'https://d' }, 'url'],
    ['no way to find users', { url: good.url }, ''],
    ['two ways to find users', { ...good, bind_dn_template: 'uid={username}' }, ''],
    ['a template for nobody', { url: good.url, bind_dn_template: 'uid=x' }, 'bind_dn_template'],
    ['an account without password', { ...good, bind_dn: 'cn=hub' }, 'bind_password'],
    ['groups that are not looked for', { ...good, allowed_groups: ['a'] }, 'allowed_groups'],
    ['a filter that is none', { ...good, group_filter: '(((' }, 'group_filter'],
  ] as const)('%s', ([, options, option]) => {
    const found = findProblems(optionsSchema.parse(options), around);
    expect(found.map((problem) => problem.option)).toContain(option);
  });

  test('and the rest are none', () => {
    expect(findProblems(optionsSchema.parse(good), around)).toEqual([]);
  });
});
