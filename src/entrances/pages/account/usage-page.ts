import { text } from '../../../platform/texts/text.ts';
import type { BudgetState } from '../../../workloads/usage/budget.ts';
import type { Amounts } from '../../../workloads/usage/count-use.ts';
import type { UseOfDay } from '../../../workloads/usage/usage-store.ts';
import { budgetList } from '../elements/budget-list.ts';
import { pageHead, pageLayout } from '../elements/layout.ts';
import type { LayoutProps } from '../elements/layout-props.ts';
import { monthLinks, monthName, type UseMonth, usePlots } from '../elements/use-plots.ts';
import { type Html, html } from '../html.ts';

export interface OwnUsageView {
  readonly layout: LayoutProps;
  readonly time: UseMonth;
  readonly days: readonly UseOfDay[];
  readonly sum: Amounts;
  readonly budgets: readonly BudgetState[];
  readonly currency: string;
}

/** What the servers of the reader used, by day. */
export function ownUsagePage({ layout, time, days, budgets, ...view }: OwnUsageView): Html {
  return pageLayout(layout, {
    title: text`Your use`,
    place: 'usage',
    body: html`${pageHead(
      text`Your use`,
      text`What your servers used in ${monthName(time)}. Days begin at 0:00 UTC.`,
      monthLinks(time, layout.now, (month) => `${layout.urls.usage}?month=${month}`),
    )}
${budgetList(budgets, view.currency)}
${usePlots(days, { time, ...view })}`,
  });
}
