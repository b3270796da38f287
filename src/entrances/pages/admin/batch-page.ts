import type { BatchReport } from '../../../identity/accounts/batches.ts';
import { message, type Phrase, readPhrase, text } from '../../../platform/texts/text.ts';
import { adminLink } from '../elements/admin-link.ts';
import { actionForm } from '../elements/form.ts';
import { adminLayout, pageHead } from '../elements/layout.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { notice } from '../elements/notice.ts';
import { formatNumber, timeElement } from '../elements/quantity.ts';
import { table } from '../elements/table.ts';
import type { ModelOf } from '../forms/binding.ts';
import { type Html, html } from '../html.ts';

/** How far something is that is done to many users. */
export function batchPage({
  layout,
  report,
  followUp,
}: {
  readonly layout: FormLayoutProps;
  readonly report: BatchReport;
  /** Of users that were made by it. */
  readonly followUp?: ModelOf<'viewBatch'>['followUp'];
}): Html {
  const { title, total, done, failed, problems, startedAt, finishedAt } = report;
  const isOver = finishedAt !== undefined;
  const handled = done + failed;
  return adminLayout(layout, {
    title,
    tab: 'users',
    scripts: isOver ? [] : ['live-state.js'],
    reloadSeconds: isOver ? undefined : 3,
    body: html`${pageHead(title, message('{count, plural, one {# user} other {# users}}. It continues when you leave this page.', { count: total }))}
<div class="stack-loose" id="batch"${!isOver && html` data-live-seconds="2"`}>
${stateNotice(report)}
<progress max="${total}" value="${handled}" aria-label="${text`Users that are done`}">${text`${handled} of ${total}`}</progress>
<dl class="facts">
<dt>${text`Done`}</dt><dd>${formatNumber(done)}</dd>
<dt>${text`Failed`}</dt><dd>${formatNumber(failed)}</dd>
<dt>${text`Left`}</dt><dd>${formatNumber(total - handled)}</dd>
<dt>${text`Begun`}</dt><dd>${timeElement(new Date(startedAt), layout.now)}</dd>
</dl>
${
  problems.length > 0 &&
  html`<section class="block"><h2>${text`What failed`}</h2><ul class="list">${problems.map(
    ({ name, message: problem }) =>
      html`<li><div class="what">${adminLink(layout, 'user', name)}<p>${readPhrase(problem)}</p></div></li>`,
  )}</ul>${failed > problems.length && html`<p class="soft">${text`And ${failed - problems.length} more.`}</p>`}</section>`
}
${isOver && followUp !== undefined && followUp.made.length > 0 && madeUsers(layout, report.id, followUp)}
</div>
<div class="pages"><a class="button${isOver && followUp === undefined && ' primary'}" href="${report.returnTo}">${text`Back to the list`}</a></div>`,
  });
}

function stateNotice({ finishedAt, isCutShort, failed }: BatchReport): Html | false {
  if (finishedAt === undefined) return false;
  if (isCutShort) {
    return notice('bad', text`The hub stopped before it was finished. Do it again for those left.`);
  }
  return failed > 0
    ? notice('warn', text`Finished, but not for all.`)
    : notice('good', text`Finished for all.`);
}

/** More are in the list of users. */
const maxRows = 200;

/** Users that were made together: who has been here, links for the others, and the way back. */
function madeUsers(
  layout: FormLayoutProps,
  batch: string,
  { made, canInvite, isUndoable }: NonNullable<ModelOf<'viewBatch'>['followUp']>,
): Html {
  const unused = made.filter(({ state }) => state !== 'used');
  const hasAllLinks = unused.every(({ state }) => state === 'sent');
  const button = (act: string, label: Phrase, style: string) =>
    actionForm(layout, {
      action: layout.urls.adminImportUsers,
      label,
      style,
      fields: { act, batch },
    });
  return html`<section class="block stack"><h2>${text`Created users`}</h2>
${
  canInvite &&
  unused.length > 0 &&
  html`<p>${hasAllLinks ? text`Everyone has a link. New links end those made before.` : text`Each person chooses a password with a link of their own. The links are in the file alone.`}</p>`
}
<div class="actions">${
    canInvite &&
    unused.length > 0 &&
    button(
      'links',
      hasAllLinks ? text`Download new links` : text`Download invitation links`,
      hasAllLinks ? '' : 'primary',
    )
  }${isUndoable && unused.length > 0 && button('undo', text`Undo: delete those who have not logged in`, 'danger')}</div>
${table(
  text`Created users`,
  [
    { label: text`User`, style: 'name', cell: ({ name }) => adminLink(layout, 'user', name) },
    { label: text`E-mail address`, cell: ({ email }) => email ?? '' },
    {
      label: text`Invitation`,
      cell: ({ state, expiresAt }) =>
        state === 'used'
          ? text`Has logged in`
          : expiresAt === undefined
            ? text`No link that works`
            : html`${state === 'sent' ? text`Link works until` : text`Link has expired`} ${timeElement(expiresAt, layout.now)}`,
    },
  ],
  made.slice(0, maxRows),
  { style: 'dense' },
)}
${made.length > maxRows && html`<p class="soft">${text`And ${made.length - maxRows} more.`}</p>`}</section>`;
}
