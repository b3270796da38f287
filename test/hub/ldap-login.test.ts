import { describe, expect, test } from 'vitest';
import { FakeBrowser } from '../support/fake-browser.ts';
import { hasSlapd, startSlapd } from '../support/slapd.ts';
import { createTestHub, submitLogin } from '../support/test-hub.ts';

const people = 'ou=people,dc=example,dc=org';
const entries = ['ada', 'bob']
  .map(
    (uid) => `
dn: uid=${uid},${people}
objectClass: inetOrgPerson
uid: ${uid}
cn: ${uid}
sn: ${uid}
userPassword: password of ${uid}
`,
  )
  .concat(`
dn: cn=staff,ou=groups,dc=example,dc=org
objectClass: groupOfNames
cn: staff
member: uid=ada,${people}
`)
  .join('');

describe.runIf(hasSlapd())('a login with an account of the directory', () => {
  test('brings the groups along, keeps others out, and locks out who guesses', async () => {
    await using slapd = await startSlapd(entries);
    await using hub = await createTestHub({
      Hub: { authenticator_class: 'ldap' },
      Authenticator: { allow_all: false, manage_groups: true, lockout_attempts: 3 },
      LDAPAuthenticator: {
        url: slapd.ldapUrl,
        tls_ca: slapd.ca,
        user_search_base: people,
        bind_dn: slapd.bindDn,
        bind_password: slapd.bindPassword,
        group_search_base: 'ou=groups,dc=example,dc=org',
        allowed_groups: ['staff'],
      },
    });
    const ada = await hub.logIn('ada', 'password of ada');
    expect((await ada.request(`${hub.url}hub/account`)).body).toContain('in the group staff');
    await expect(hub.logIn('bob', 'password of bob')).rejects.toThrow('403');

    const attempt = (password: string) =>
      submitLogin(new FakeBrowser(), hub.url, 'ada', password).then(({ status }) => status);
    expect([await attempt('a'), await attempt('b'), await attempt('c')]).toEqual([401, 401, 401]);
    expect(await attempt('password of ada')).toBe(429);
    expect(JSON.stringify(hub.logLines)).not.toContain('password of');

    await slapd.stop();
    const down = await submitLogin(new FakeBrowser(), hub.url, 'bob', 'password of bob');
    expect(down.status).toBe(503);
    const page = await new FakeBrowser().request(`${hub.url}hub/login`);
    expect(page.body).toContain('does not answer at the moment');
  });
});
