import type { BatchReport } from '../../accounts/batches.ts';
import { pageHead } from '../elements/layout.ts';
import type { LayoutProps } from '../elements/layout-props.ts';
import { notice } from '../elements/notice.ts';
import { formatCount } from '../elements/quantity.ts';
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
    body: html`${pageHead(title, `${formatCount(total, 'user')}. It goes on when you leave this page.`)}
<div class="stack-loose" id="batch"${!isOver && html` data-live-seconds="2"`}>
${stateNotice(report)}
<progress max="${total}" value="${handled}" aria-label="Users that are done">${handled} of ${total}</progress>
<dl class="facts">
<dt>Done</dt><dd>${done.toLocaleString('en')}</dd>
<dt>Failed</dt><dd>${failed.toLocaleString('en')}</dd>
<dt>Left</dt><dd>${(total - handled).toLocaleString('en')}</dd>
<dt>Begun</dt><dd>${timeElement(new Date(startedAt), layout.now)}</dd>
</dl>
${
  problems.length > 0 &&
  html`<section class="block"><h2>What failed</h2><ul class="list">${problems.map(
    ({ name, message }) =>
      html`<li><div class="what"><a href="${layout.urls.adminUser(name)}">${name}</a><p>${message}</p></div></li>`,
  )}</ul>${failed > problems.length && html`<p class="soft">And ${(failed - problems.length).toLocaleString('en')} more.</p>`}</section>`
}
</div>
<p><a class="button${isOver && ' primary'}" href="${report.returnTo}">Back to the list</a></p>`,
  });
}

function stateNotice({ finishedAt, isCutShort, failed }: BatchReport): Html | false {
  if (finishedAt === undefined) return false;
  if (isCutShort) {
    return notice('bad', 'The hub stopped before it was finished. Do it again for those left.');
  }
  return failed > 0
    ? notice('warn', 'Finished, but not for all.')
    : notice('good', 'Finished for all.');
}
