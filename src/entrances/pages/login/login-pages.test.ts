import { describe, expect, test } from 'vitest';
import { loadLanguages } from '../../../platform/texts/languages.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { renderHtml } from '../html.ts';
import { createPageUrls } from '../page-urls.ts';
import { choosePasswordPage } from './choose-password-page.ts';
import { consentPage } from './consent-page.ts';
import { loggedOutPage } from './logged-out-page.ts';
import { type LoginChoice, type LoginView, loginPage } from './login-page.ts';
import { secondFactorPage } from './second-factor-page.ts';

const layout: FormLayoutProps = {
  hubTitle: 'Hub',
  urls: createPageUrls('/'),
  assets: { url: (name) => `/hub/static/${name}` },
  now: new Date('2026-11-20T10:00:00Z'),
  csrfToken: 'csrf-token',
};

const password: LoginChoice = {
  authenticator: 'password',
  method: {
    kind: 'form',
    label: 'Password',
    fields: [
      { name: 'username', label: 'User name', type: 'text', autocomplete: 'username' },
      { name: 'password', label: 'Password', type: 'password', autocomplete: 'current-password' },
    ],
  },
};
const github: LoginChoice = {
  authenticator: 'github',
  method: { kind: 'external', label: 'Continue with GitHub', icon: 'github' },
};

const login = (view: Omit<LoginView, 'layout'>): string => String(loginPage({ layout, ...view }));

describe('the login page', () => {
  test('offers the authenticators in the order of the configuration', () => {
    const first = login({ choices: [github, password] });
    expect(first.indexOf('Continue with GitHub')).toBeLessThan(first.indexOf('User name'));
    const second = login({ choices: [password, github] });
    expect(second.indexOf('User name')).toBeLessThan(second.indexOf('Continue with GitHub'));
  });

  test('carries next through the form and the link of a provider', () => {
    const page = login({ choices: [password, github], next: '/user/alice/?a=1&b=2' });
    expect(page).toContain('name="next" value="/user/alice/?a=1&amp;b=2"');
    expect(page).toContain('href="/hub/login/with/github?next=%2Fuser%2Falice%2F%3Fa%3D1%26b%3D2"');
  });

  test('sends no next when there is none', () => {
    expect(login({ choices: [password, github] })).not.toContain('next');
  });

  test('names the authenticator whose form is sent', () => {
    expect(login({ choices: [password] })).toContain('name="authenticator" value="password"');
  });

  test('offers passkeys to fill in for the accounts that have them alone', () => {
    const ldap = { ...password, authenticator: 'ldap' };
    const page = login({ choices: [ldap, password], passkeysOf: 'password' });
    expect(page.match(/autocomplete="username[^"]*"/g)).toEqual([
      'autocomplete="username"',
      'autocomplete="username webauthn"',
    ]);
    expect(login({ choices: [password] })).not.toContain('webauthn');
  });

  test('speaks the error at once and keeps what was typed, but never a password', () => {
    const page = login({
      choices: [password],
      error: 'Wrong user name or password.',
      failedAuthenticator: 'password',
      typed: new URLSearchParams({ username: 'alice', password: 'hunter2' }),
    });
    expect(page).toMatch(/role="alert">.*Wrong user name or password\./);
    expect(page).toContain('value="alice"');
    expect(page).not.toContain('hunter2');
  });

  test('does not put what was typed into the form of another authenticator', () => {
    const other = { ...password, authenticator: 'ldap' };
    const page = login({
      choices: [password, other],
      failedAuthenticator: 'ldap',
      typed: new URLSearchParams({ username: 'alice' }),
    });
    expect(page.match(/value="alice"/g)).toHaveLength(1);
    expect(page.indexOf('value="ldap"')).toBeLessThan(page.indexOf('value="alice"'));
  });

  test('tells why and how long to wait, after too many attempts', () => {
    const page = (error?: string) =>
      login({ choices: [password], waitSeconds: 90, ...(error && { error }) });
    expect(page()).toContain('Too many attempts. Try again in 2 minutes.');
    expect(page('Many users are logging in right now.')).toContain(
      'Many users are logging in right now. Try again in 2 minutes.',
    );
  });

  test('is in the language of its reader, with the fields of built-in logins and the names of others', async () => {
    const german = (await loadLanguages()).find('de');
    const page = renderHtml(
      loginPage({ layout, choices: [password, github], waitSeconds: 90 }),
      german,
    );
    for (const words of [
      'Zu viele Versuche. Versuchen Sie es in 2 Minuten erneut.',
      'Benutzername',
      'Continue with GitHub',
    ])
      expect(page).toContain(words);
  });

  test('tells two forms apart by their names', () => {
    const ldap: LoginChoice = {
      ...password,
      authenticator: 'ldap',
      method: { ...password.method, label: 'University account' },
    };
    expect(login({ choices: [password, ldap] })).toContain('<h2>University account</h2>');
    expect(login({ choices: [password] })).not.toContain('<h2>');
  });

  test('says that a provider does not answer and still lets people try', () => {
    const page = login({ choices: [{ ...github, isUnavailable: true }, password] });
    expect(page).toContain('does not answer at the moment');
    expect(page).toContain('href="/hub/login/with/github"');
  });

  test('says so when there is no way to log in', () => {
    expect(login({ choices: [] })).toContain('No one can log in here yet.');
  });
});

describe('choosing a password', () => {
  const rules = { minimumLength: 12 };

  test('the set-up link carries its secret and asks for a name', () => {
    const page = String(
      choosePasswordPage({
        layout,
        rules,
        purpose: { kind: 'first-administrator', secret: 'one-time' },
      }),
    );
    expect(page).toContain('action="/hub/set-up"');
    expect(page).toContain('name="secret" value="one-time"');
    expect(page).toContain('name="name"');
    expect(page).toContain('At least 12 characters.');
  });

  test.for(['invitation', 'reset'] as const)(
    'the link of an %s says whose account it is',
    (kind) => {
      const page = String(
        choosePasswordPage({
          layout,
          rules,
          purpose: { kind, secret: 'one-time', userName: 'bob' },
        }),
      );
      expect(page).toContain('action="/hub/invitation"');
      expect(page).toContain('bob');
      expect(page).not.toContain('name="name"');
    },
  );

  test('a password that must be changed leads on to where the login went', () => {
    const page = String(
      choosePasswordPage({
        layout,
        rules,
        purpose: { kind: 'required', userName: 'bob', next: '/x' },
      }),
    );
    expect(page).toContain('action="/hub/login/password"');
    expect(page).toContain('name="next" value="/x"');
  });

  test('a problem stands at its field', () => {
    const page = String(
      choosePasswordPage({
        layout,
        rules,
        purpose: { kind: 'required', userName: 'bob' },
        problems: { repeated: 'Not the same.' },
      }),
    );
    expect(page).toContain('aria-invalid="true" aria-describedby="field-repeat_password-problem"');
    expect(page).toContain('id="field-repeat_password-problem">Not the same.');
  });
});

test('the second factor is asked for with a field that phones fill in', () => {
  const page = String(
    secondFactorPage({
      layout,
      next: '/x',
      offers: { code: true, passkey: false, recoveryCode: true },
    }),
  );
  expect(page).toContain('autocomplete="one-time-code"');
  expect(page).toContain('inputmode="numeric"');
  expect(page).toContain('name="next" value="/x"');
});

test('where a recovery code is asked for there is one way back to what is used otherwise', () => {
  const pageFor = (code: boolean, passkey: boolean) =>
    String(
      secondFactorPage({ layout, isRecovery: true, offers: { code, passkey, recoveryCode: true } }),
    );
  for (const [code, passkey, words] of [
    [true, false, 'Use my authenticator app'],
    [false, true, 'Use my passkey'],
    [true, true, 'Use my authenticator app or passkey'],
  ] as const) {
    const page = pageFor(code, passkey);
    expect(page).toContain(`>${words}</a>`);
    expect(page.match(/passkey/g) ?? []).toHaveLength(passkey ? 1 : 0);
  }
});

test('after a logout the page warns of a login that goes on at the provider', () => {
  expect(String(loggedOutPage({ layout, provider: 'University' }))).toContain(
    'still be logged in at University',
  );
  expect(String(loggedOutPage({ layout }))).not.toContain('still be logged in');
});

describe('the consent page', () => {
  const consent = {
    clientName: 'Gallery',
    clientKind: 'service',
    ownerUserName: undefined,
    redirectHost: 'gallery.example.org',
    scopes: [
      {
        scope: 'read:users!user=alice',
        description: 'Read your account',
        restriction: 'only user alice',
        group: 'people',
        risk: undefined,
      },
    ],
    leavesHub: true,
    exceedingOwn: [],
    isAdministration: false,
    grantedScopes: ['read:users!user=alice', 'access:services!service=gallery'],
  } as const;
  const action = '/hub/api/oauth2/authorize?client_id=service-gallery&state=a%2Fb';
  const page = String(consentPage({ layout, userName: 'alice', consent, action }));

  test('names the client, what it may do, where it leads and who is asked', () => {
    for (const text of [
      'Allow Gallery?',
      'Read your account',
      '(only user alice)',
      'gallery.example.org',
      'You are alice.',
    ]) {
      expect(page).toContain(text);
    }
  });

  test('names where it leads only when that is elsewhere', () => {
    const here = { ...consent, leavesHub: false };
    expect(String(consentPage({ layout, userName: 'alice', consent: here, action }))).not.toContain(
      'gallery.example.org',
    );
  });

  test('folds the names of scopes away', () => {
    const [before = '', folded = ''] = page.split('<details');
    expect(before).not.toContain('read:users!user=alice');
    expect(folded).toContain('<code>read:users!user=alice</code>');
  });

  test('says what reaches beyond the own account, and that an administrator gives everything', () => {
    expect(page).not.toContain('notice warn');
    const scope = {
      scope: 'shutdown',
      description: 'Shut the hub down',
      restriction: undefined,
      group: 'hub',
      risk: 'Interrupts everyone.',
    } as const;
    const exceedingOwn = Array.from({ length: 8 }, () => scope);
    const partly = String(
      consentPage({ layout, userName: 'alice', consent: { ...consent, exceedingOwn }, action }),
    );
    expect(partly).toContain('beyond your own account');
    expect(partly.match(/Shut the hub down/g)).toHaveLength(6);
    expect(partly).toContain('And 2 more.');
    const whole = { ...consent, exceedingOwn, isAdministration: true };
    expect(String(consentPage({ layout, userName: 'alice', consent: whole, action }))).toContain(
      'You are an administrator',
    );
  });

  test('goes back to the authorization request with the scopes that were shown', () => {
    expect(page).toContain(
      'action="/hub/api/oauth2/authorize?client_id=service-gallery&amp;state=a%2Fb"',
    );
    expect(page).toContain('name="scopes" value="read:users!user=alice"');
    expect(page).toContain('name="scopes" value="access:services!service=gallery"');
  });

  test('lets people deny as well as allow', () => {
    expect(page).toContain('name="decision" value="deny">Deny');
    expect(page).toContain('name="decision" value="allow">Allow');
  });

  test('says whose server asks when it is not the own one', () => {
    const server = { ...consent, clientKind: 'server', ownerUserName: 'bob' } as const;
    expect(String(consentPage({ layout, userName: 'alice', consent: server, action }))).toContain(
      'This server of bob',
    );
  });
});
