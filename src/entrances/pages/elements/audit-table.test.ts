import { expect, test } from 'vitest';
import type { AuditEntry } from '../../../platform/audit/audit-event.ts';
import { loadLanguages } from '../../../platform/texts/languages.ts';
import { renderHtml } from '../html.ts';
import { createPageUrls } from '../page-urls.ts';
import { auditTable } from './audit-table.ts';
import type { LayoutProps } from './layout-props.ts';

const layout = { now: new Date(), urls: createPageUrls('/') } as LayoutProps;

type Sessions = { readonly sessionId: string; readonly userAgent: string }[];

const tableOf = (entry: Partial<AuditEntry>, sessions?: Sessions) =>
  auditTable(
    layout,
    [
      {
        id: 1,
        at: layout.now,
        actor: { kind: 'user', name: 'ada' },
        action: 'oauth.authorize',
        result: 'done',
        detail: {},
        users: [],
        ...entry,
      } as AuditEntry,
    ],
    { caption: 'Activity', isForAdministrators: true, sessions },
  );
const rowsOf = (entry: Partial<AuditEntry>, sessions?: Sessions): string =>
  String(tableOf(entry, sessions));

async function german() {
  const found = (await loadLanguages()).find('de');
  if (found === undefined) throw new Error('there is no German');
  return found;
}

const ada = '<a href="/hub/admin/users/ada">ada</a>';

test('an entry tells from where it came, and by which browser as long as that login goes on', () => {
  const actor = { kind: 'user', name: 'ada', sessionId: 's1', address: '192.0.2.7' } as const;
  const from = 'from <a href="/hub/admin/activity?address=192.0.2.7">192.0.2.7</a>';
  const sessions = [{ sessionId: 's1', userAgent: 'Mozilla/5.0 (X11; Linux) Firefox/140.0' }];
  expect(rowsOf({ actor: { ...actor, tokenId: undefined } }, sessions)).toContain(
    `${from}, Firefox on Linux`,
  );
  expect(rowsOf({ actor: { ...actor, tokenId: undefined } })).toContain(`${from}<`);
});

test.each([
  ['hub-user-ada', `Server of ${ada}`],
  ['hub-user-ada-lab', 'Application hub-user-ada-lab'],
  ['service-wiki', 'Application service-wiki'],
])('the OAuth client %s is told by what it is', (name, shown) => {
  expect(rowsOf({ target: { kind: 'client', name } })).toContain(`<div>${shown}</div>`);
});

test('an action of a later version of the hub has its code', () => {
  const action = 'constructor';
  expect(rowsOf({ action })).toContain('<span title="constructor">constructor</span>');
});

test('facts are told in the language of the reader', async () => {
  const detail = {
    system_account: 'ada-lab',
    admin: true,
    until: '2026-03-01T12:00:00.000Z',
    from: null,
    scopes: ['self', 'read:users'],
    of_a_later_version: { a: 1 },
    constructor: 1,
  };
  const cell = /<div>(Konto[^<]*)<\/div>/.exec(
    renderHtml(tableOf({ detail }), await german()),
  )?.[1];
  expect(cell?.replaceAll('\u00a0', ' ')).toMatch(
    /^Konto auf der Maschine: ada-lab; Administrator: Ja; Bis: 01\.03\.2026, 12:00 UTC; Von der Instanz: –; Scopes: self, read:users; of a later version: {&quot;a&quot;:1}; constructor: 1$/,
  );
  expect(rowsOf({ detail })).toContain('Account on the machine: ada-lab; Administrator: Yes; ');
});

test.each([
  [{ reason: 'credentials' }, 'Grund: Benutzername oder Passwort falsch'],
  [
    { reason: 'throttled', purpose: 'second-factor' },
    'Grund: Zu viele Versuche; Zweck: Zweiter Faktor',
  ],
  [{ access: 'public' }, 'Besucher: Für alle offen'],
  [{ origin: 'api' }, 'Verwaltet durch: Administratoren'],
  [{ origin: 'ldap' }, 'Verwaltet durch: ldap'],
  [{ changed: ['name', 'user_options'] }, 'Geändert: Name, Optionen'],
  [{ count: 3, action: 'login' }, 'Anzahl: 3; Aktion: Anmeldung'],
  [
    { reason: 'of a later version', purpose: 'constructor' },
    'Grund: of a later version; Zweck: constructor',
  ],
])('codes among them, as in %j, too', async (detail, reported) => {
  expect(renderHtml(tableOf({ detail }), await german())).toContain(`<div>${reported}</div>`);
});

test('what a user wrote is never taken for a time', () => {
  const note = '2026-99-99T99:99:99Z';
  expect(rowsOf({ detail: { note, until: note } })).toContain(`Note: ${note}; Until: ${note}`);
  const time = '2026-03-01T12:00:00.000Z';
  expect(rowsOf({ detail: { note: time } })).toContain(`Note: ${time}`);
});
