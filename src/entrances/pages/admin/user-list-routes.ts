import { operationOf } from '../../../operations/operations.ts';
import { reachesOthers } from '../../../operations/perform.ts';
import { text } from '../../../platform/texts/text.ts';
import { toCsv } from '../csv.ts';
import { bordersOf } from '../elements/table.ts';
import type { BoundPages, ModelOf, Shown } from '../forms/binding.ts';
import type { PageContext } from '../page-context.ts';
import { summaryOf } from '../servers/server-views.ts';
import { userActs } from './user-acts.ts';
import { type AdminUserRow, type AdminUsersView, adminUsersPage } from './users-page.ts';

/** `/hub/admin/users`: the list of users. */
export function adminUserListRoutes({ page, form, pages }: BoundPages): void {
  page('/admin/users', 'viewUsers', (shown) => {
    const { layout, model, may } = shown;
    const { query, found, rows, counts, known } = model;
    return adminUsersPage({
      layout,
      query,
      users: rows.map((row) => rowOf(row, may, pages)),
      total: found.total,
      borders: bordersOf(found, ({ key }) => key),
      counts,
      known,
      acts: actsOf(shown),
      mayAdd: may('checkNewUsers'),
    });
  });

  form('/admin/links.csv', 'writeLinks', {
    body: (sent) => ({ links: sent.get('links') ?? '' }),
    done({ ctx, result: rows }) {
      const language = pages.languageOf(ctx);
      const heading = [text`User`, text`Link`].map((each) => each.in(language));
      const csv = toCsv([heading, ...rows]);
      return { file: { name: 'links.csv', type: 'text/csv; charset=utf-8', text: csv } };
    },
  });
}

type Model = ModelOf<'viewUsers'>;

/** What is of use for others than the reader, whom the list shows as well. */
function actsOf({ model, visitor }: Shown<Model>): AdminUsersView['acts'] {
  return Object.entries(userActs)
    .filter(
      ([name, { operation }]) =>
        reachesOthers(operationOf(operation), visitor.caller) &&
        (name !== 'invite' || model.canInvite) &&
        (name !== 'start' || model.canStart),
    )
    .map(([name, { label }]) => ({ name, label }));
}

function rowOf(
  { servers, mayOpenServer, ...row }: Model['rows'][number],
  may: Shown<Model>['may'],
  { urlOf }: Pick<PageContext, 'urlOf'>,
): AdminUserRow {
  const of = { name: row.name };
  const summaries = servers.map(({ server, prefix, load }) =>
    summaryOf(server, urlOf(prefix), load),
  );
  const main = summaries.find(({ name }) => name === '');
  const mayReadServer = may('getDefaultServer', of);
  return {
    ...row,
    leadsTo: may('viewUser', of) ? 'user' : mayReadServer ? 'server' : undefined,
    server: mayReadServer ? (main?.state ?? 'stopped') : undefined,
    pausedAt: main?.pausedAt,
    openUrl: main?.state === 'running' && mayOpenServer ? main.url : undefined,
    mayStart: !row.isSuspended && may('startDefaultServer', of),
    mayStop: may('stopDefaultServer', of),
    load: main?.load,
    runningNamedServers: summaries.filter(
      ({ name, state }) => name !== '' && (state === 'running' || state === 'starting'),
    ).length,
  };
}
