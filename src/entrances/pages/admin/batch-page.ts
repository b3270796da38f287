import type { BatchReport } from '../../../identity/accounts/batches.ts';
import { message, readPhrase, text } from '../../../platform/texts/text.ts';
import { adminLink } from '../elements/admin-link.ts';
import { pageHead } from '../elements/layout.ts';
import type { LayoutProps } from '../elements/layout-props.ts';
import { notice } from '../elements/notice.ts';
import { formatNumber } from '../elements/quantity.ts';
import { timeElement } from '../elements/time.ts';
import { type Html, html } from '../html.ts';
import { adminLayout } from './admin-layout.ts';

/** How far something is that is done to many users. */
export function batchPage({
  layout,
  report,
}: {
  readonly layout: LayoutProps;
  readonly report: BatchReport;
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
</div>
<p><a class="button${isOver && ' primary'}" href="${report.returnTo}">${text`Back to the list`}</a></p>`,
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
