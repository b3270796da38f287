import { setTimeout as sleep } from 'node:timers/promises';
import { maxNewUsers } from '../../../identity/accounts/accounts.ts';
import type { Batches } from '../../../identity/accounts/batches.ts';
import type { LoginSessions } from '../../../identity/sessions/login-sessions.ts';
import { type NewUsersFile, readNewUsers } from '../../../operations/new-users-file.ts';
import { HubError } from '../../../platform/errors.ts';
import { message, phraseIn, type Text, text } from '../../../platform/texts/text.ts';
import { toCsv } from '../csv.ts';
import type { BoundPages, Chosen, ModelOf } from '../forms/binding.ts';
import type { Next } from '../forms/next.ts';
import { newUsersPage, newUsersPreviewPage } from './new-users-page.ts';

/** What is done by then is shown at once. */
const maxWaitMs = 2_000;

type Batch = Parameters<Batches['start']>[0];

const typedIn = (sent: URLSearchParams) => sent.get('people') ?? '';

/** `/hub/admin/new-users` and `/hub/admin/import-users`: users by the list, seen before they are made. */
export function adminUserImportRoutes(
  { page, form, choice, pages: { urls } }: BoundPages,
  {
    batches,
    logins,
  }: { readonly batches: Pick<Batches, 'start'>; readonly logins: Pick<LoginSessions, 'find'> },
): void {
  const showNew = page('/admin/new-users', 'viewNewUsers', ({ layout, failure }) =>
    newUsersPage({
      layout,
      typed: failure && typedIn(failure.sent),
      problem: failure?.problem,
    }),
  );

  form('/admin/new-users', 'checkNewUsers', {
    isUnfinished: (sent) => sent.get('edit') === 'true',
    body: async (sent) => bodyOf(await readNewUsers(typedIn(sent))),
    async done({ sent, result: verdicts }) {
      const file = await readNewUsers(typedIn(sent));
      return {
        show: (layout) => newUsersPreviewPage({ layout, typed: typedIn(sent), file, verdicts }),
      };
    },
    again: showNew,
  });

  async function importUsers(chosen: Chosen): Promise<Next> {
    const file = await readNewUsers(typedIn(chosen.sent));
    // As it is by now, and with the rights of now.
    const verdicts = await chosen.read('checkNewUsers', { body: bodyOf(file) });
    const wanted = new Map(
      verdicts.flatMap(({ name, verdict }, index) =>
        verdict === 'create' ? [[name, file.users[index]] as const] : [],
      ),
    );
    if (wanted.size === 0)
      throw new HubError('conflict', text`None of these users can be created.`);
    const title = message('{count, plural, one {Create # user} other {Create # users}}', {
      count: wanted.size,
    });
    return begin(chosen, {
      title,
      names: [...wanted.keys()],
      keepsNames: true,
      async work(name) {
        await chosen.perform({ params: {}, body: wanted.get(name) });
      },
    });
  }

  async function begin(
    { visitor, language }: Chosen,
    { title, ...batch }: { title: Text } & Pick<Batch, 'names' | 'keepsNames' | 'work'>,
  ): Promise<Next> {
    const { id, finished } = await batches.start({
      by: visitor.login.user.id,
      title: phraseIn(title, language),
      returnTo: urls.adminUsers,
      ...batch,
    });
    await Promise.race([finished, sleep(maxWaitMs, undefined, { ref: false })]);
    return { redirect: urls.adminBatch(id) };
  }

  choice('/admin/import-users', {
    field: 'act',
    operations: { import: 'addNewUser', links: 'createInvitation', undo: 'undoNewUser' },
    logins,
    async act(chosen) {
      if (chosen.choice === 'import') return importUsers(chosen);
      const batch = chosen.sent.get('batch') ?? '';
      const { followUp } = await chosen.read('viewBatch', { params: { batch } });
      if (followUp === undefined)
        throw new HubError('not_found', text`Nothing is known of this any more.`);
      const unused = followUp.made.filter(({ state }) => state !== 'used');
      if (chosen.choice === 'links') return writeLinks(unused, chosen);
      const title = message('{count, plural, one {Delete # user} other {Delete # users}}', {
        count: unused.length,
      });
      return begin(chosen, {
        title,
        names: unused.map(({ name }) => name),
        async work(name) {
          await chosen.perform({ params: { batch, name } });
        },
      });
    },
  });
}

type Made = NonNullable<ModelOf<'viewBatch'>['followUp']>['made'];

/** Links for those without one that works; new ones for all when there are none. */
async function writeLinks(unused: Made, { perform, language }: Chosen): Promise<Next> {
  const without = unused.filter(({ state }) => state !== 'sent');
  const rows: string[][] = [];
  for (const { name, email } of (without.length > 0 ? without : unused).slice(0, maxNewUsers)) {
    const { url } = (await perform({ params: { name } })) as ModelOf<'createInvitation'>;
    rows.push([name, email ?? '', url]);
  }
  const heading = [text`User`, text`E-mail address`, text`Link`].map((each) => each.in(language));
  const csv = toCsv([heading, ...rows]);
  return { file: { name: 'links.csv', type: 'text/csv; charset=utf-8', text: csv } };
}

const bodyOf = ({ users }: NewUsersFile) => ({
  users: users.map(({ line: _line, ...user }) => ({
    ...user,
    groups: [...user.groups],
    roles: [...user.roles],
  })),
});
