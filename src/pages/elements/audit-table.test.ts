import { expect, test } from 'vitest';
import type { AuditEntry } from '../../audit/deed.ts';
import { createPageUrls } from '../page-urls.ts';
import { auditTable } from './audit-table.ts';
import type { LayoutProps } from './layout-props.ts';

const layout = { now: new Date(), urls: createPageUrls('/') } as LayoutProps;

const rowsOf = (entry: Partial<AuditEntry>): string =>
  String(
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
      { caption: 'Activity', isForAdministrators: true },
    ),
  );

const ada = '<a href="/hub/admin/users/ada">ada</a>';

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
