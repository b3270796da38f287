import { describe, expect, test } from 'vitest';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { createPageUrls } from '../page-urls.ts';
import { type AccountView, accountPage } from './account-page.ts';
import { recoveryCodesPage, secondFactorSetUpPage } from './second-factor-pages.ts';
import { sessionSection } from './session-section.ts';
import { readTokenForm } from './token-form.ts';
import type { NewTokenView } from './token-form-view.ts';
import { type TokenSection, tokenSection } from './token-section.ts';

const now = new Date('2026-11-20T10:00:00Z');
const layout: FormLayoutProps = {
  hubTitle: 'Hub',
  urls: createPageUrls('/base/'),
  assets: { url: (name) => `/base/hub/static/${name}` },
  now,
  csrfToken: 'csrf-token',
  user: { name: 'alice', mayAdminister: false },
};
const ago = (minutes: number): Date => new Date(now.getTime() - minutes * 60_000);

const part = {
  total: 1,
  shown: 1,
  borders: { first: undefined, last: undefined },
  urlOf: () => '/base/hub/account#tokens',
};

describe('the tokens of the account', () => {
  const form = readTokenForm(new URLSearchParams());
  const newToken: Omit<NewTokenView, 'layout'> = {
    lifetimes: [
      { value: '3600', label: '1 hour' },
      { value: '2592000', label: '30 days' },
      { value: '', label: 'No end' },
    ],
    extents: ['everything', 'servers', 'choose'],
    choices: { groups: [], reaches: [], reachKinds: [] },
    isAdministrator: false,
    form,
  };
  const tokens = (section: Partial<TokenSection>): string =>
    String(
      tokenSection(layout, {
        tokens: [],
        clients: [],
        pages: { tokens: part, clients: part },
        form: newToken,
        ...section,
      }),
    );
  const token = { id: 't1', note: 'Nightly', may: [], createdAt: ago(60) };
  const phrase = (description: string) => ({
    scope: description,
    description,
    restriction: undefined,
  });

  test('shows a new token once, with a button that copies it', () => {
    const page = tokens({ newToken: { token: 'secret-token', note: 'Nightly' } });
    expect(page.match(/secret-token/g)).toHaveLength(1);
    expect(page).toContain('hidden data-copy="copy-new-token"');
    expect(page).toContain('not shown again');
  });

  test('revokes a token by its id', () => {
    const page = tokens({ tokens: [token] });
    expect(page).toContain('action="/base/hub/token/revoke"');
    expect(page).toContain('name="token_id" value="t1"');
  });

  test('tells apart what never expires, what will and what has', () => {
    expect(tokens({ tokens: [token] })).toContain('Never');
    expect(tokens({ tokens: [{ ...token, expiresAt: ago(-120) }] })).toContain('in 2 hours');
    expect(tokens({ tokens: [{ ...token, expiresAt: ago(1) }] })).toContain('Expired');
  });

  test('folds the form away until it is wanted, and keeps what was typed', () => {
    expect(tokens({})).toContain('<details class="new"><summary');
    const page = tokens({
      opened: 'by hand',
      form: {
        ...newToken,
        form: { ...form, note: 'Mine', expires_in: '', scopes: 'x' },
        problem: 'There is no scope x.',
      },
    });
    expect(page).toContain('<details class="new" open>');
    expect(page).toContain('value="Mine"');
    expect(page).toContain('<option value="" selected>No end</option>');
    expect(page).toContain('name="scopes" type="text" value="x"');
    expect(page).toContain('There is no scope x.');
  });

  test('offers a token for thirty days and for the servers first, and says what everything means', () => {
    const page = tokens({ form: { ...newToken, isAdministrator: true } });
    expect(page).toContain('name="may" value="servers" checked');
    expect(page).toContain('<option value="2592000" selected>');
    expect(page).toContain('name="may" value="everything" required');
    expect(page).toContain('You are an administrator');
    const barred = tokens({ form: { ...newToken, extents: ['identify', 'choose'] } });
    expect(barred).toContain('name="may" value="identify" checked');
  });

  test('warns of tokens that do not expire, where they can be made', () => {
    expect(tokens({})).toContain('does not expire works until');
    const [ending] = newToken.lifetimes;
    expect(tokens({ form: { ...newToken, lifetimes: [ending!] } })).not.toContain(
      'does not expire',
    );
  });

  test('says in words what a token may do, the first two of them and the others folded away', () => {
    const may = ['Read this', 'Start that', 'Stop it'].map(phrase);
    const page = tokens({ tokens: [{ ...token, may }] });
    const [before = '', after = ''] = page.split('<details class="more small">');
    expect(before).toContain('Read this; Start that; and 1 more');
    expect(before).not.toContain('Stop it');
    expect(after).toContain('Stop it <code>Stop it</code>');
  });

  test('groups what applications hold and takes it back as a whole', () => {
    const page = tokens({
      clients: [
        {
          clientId: 'service-gallery',
          name: 'Gallery',
          may: Array.from({ length: 11 }, (_, index) => phrase(`Open ${index}`)),
          tokenCount: 3,
          firstAllowedAt: ago(60),
        },
      ],
    });
    expect(page).toContain('3 tokens');
    expect(page).toContain('Open 0; Open 1; and 9 more');
    expect(page).toContain('name="client_id" value="service-gallery"');
    expect(page).toContain('<li>and 6 more');
  });
});

describe('the sessions of the account', () => {
  const session = {
    sessionId: 's1',
    userAgent: 'Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0',
    address: '192.0.2.1',
    createdAt: ago(90),
    lastSeenAt: ago(1),
    isCurrent: true,
  };
  const other = { ...session, sessionId: 's2', isCurrent: false };

  test('marks the browser one is in, which logs out instead of ending itself', () => {
    const page = String(sessionSection(layout, [session, other]));
    expect(page.match(/This browser/g)).toHaveLength(1);
    expect(page).toContain('Firefox on Linux');
    expect(page).toContain('name="session_id" value="s2"');
    expect(page).not.toContain('value="s1"');
  });

  test('offers to end all others only when there are others', () => {
    expect(String(sessionSection(layout, [session]))).not.toContain('end-others');
    expect(String(sessionSection(layout, [session, other]))).toContain(
      'action="/base/hub/sessions/end-others"',
    );
  });
});

describe('the account page', () => {
  const account = (view: Partial<AccountView>): string =>
    String(
      accountPage({
        layout,
        userName: 'alice',
        groups: [],
        profile: { displayName: undefined, email: undefined, providedBy: undefined },
        identities: [],
        linkable: [],
        sessions: [],
        tokens: {
          tokens: [],
          clients: [],
          pages: { tokens: part, clients: part },
          form: undefined,
        },
        activity: [],
        ...view,
      }),
    );

  test('has the logins and the tokens as parts, to which its navigation leads', () => {
    const page = account({});
    const [tabs = ''] = /<nav class="tabs"[\s\S]*?<\/nav>/.exec(page) ?? [];
    expect(
      [...tabs.matchAll(/href="([^"]+)"( aria-current="page")?/g)].map(([, ...link]) => link),
    ).toEqual([
      ['/base/hub/account', ' aria-current="page"'],
      ['/base/hub/account#sessions', undefined],
      ['/base/hub/account#tokens', undefined],
      ['/base/hub/usage', undefined],
    ]);
    for (const part of ['sessions', 'tokens']) expect(page).toContain(`id="${part}"`);
  });

  test('asks for the current password before a new one', () => {
    const page = account({
      password: {
        rules: { minimumLength: 10 },
        tokens: { count: 0, isChosen: true },
        problems: { current: 'Not your password.' },
      },
    });
    expect(page.indexOf('current_password')).toBeLessThan(page.indexOf('new_password'));
    expect(page).toContain('Not your password.');
  });

  test('leaves out the password of an account that has none here', () => {
    expect(account({})).not.toContain('current_password');
  });

  test('does not unlink the last way in', () => {
    const identity = {
      id: 'i1',
      label: 'GitHub',
      display: 'alice-l',
      linkedAt: ago(99),
      mayUnlink: true,
    };
    expect(account({ identities: [identity] })).toContain('name="identity_id" value="i1"');
    const last = account({ identities: [{ ...identity, mayUnlink: false }] });
    expect(last).not.toContain('identity_id');
    expect(last).toContain('Your only login method');
  });

  test('links a provider by a form, since it changes the account', () => {
    expect(account({ linkable: [{ authenticator: 'google', label: 'Google' }] })).toContain(
      'name="authenticator" value="google"',
    );
  });

  test('tells how many recovery codes are left, and cannot turn off what is required', () => {
    const page = account({ secondFactor: { isOn: true, isRequired: true, recoveryCodesLeft: 1 } });
    expect(page).toContain('You have 1 recovery code left.');
    expect(page).not.toContain('Turn off');
    expect(
      account({ secondFactor: { isOn: true, isRequired: false, recoveryCodesLeft: 0 } }),
    ).toContain('no recovery codes left');
  });
});

describe('setting up a second factor', () => {
  test('draws the QR code square by square and groups the key for typing', () => {
    const page = String(
      secondFactorSetUpPage({
        layout,
        qr: { size: 2, data: [1, 0, 0, 1] },
        secret: 'ABCDEFGHIJ',
        state: 'x',
      }),
    );
    expect(page).toContain('viewBox="0 0 10 10"');
    expect(page).toContain('d="M4 4h1v1h-1zM5 5h1v1h-1z"');
    expect(page).toContain('ABCD EFGH IJ');
  });

  test('shows recovery codes to copy, and says that they come once', () => {
    const page = String(
      recoveryCodesPage({ layout, codes: ['aaaa-1111', 'bbbb-2222'], after: 'renewal' }),
    );
    expect(page).toContain('data-copy-text="aaaa-1111\nbbbb-2222"');
    expect(page).toContain('not shown again');
    expect(page).toContain('These replace the codes you had.');
  });
});
