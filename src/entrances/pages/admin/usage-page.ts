import { message, type Phrase, text } from '../../../platform/texts/text.ts';
import type { Amounts } from '../../../workloads/usage/count-use.ts';
import {
  type NamedUse,
  type UseKind,
  type UseOfDay,
  type UseSort,
  useKinds,
} from '../../../workloads/usage/usage-store.ts';
import { csrfField, hiddenFields } from '../elements/form.ts';
import { adminLayout, pageHead } from '../elements/layout.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { type Column, table } from '../elements/table.ts';
import {
  formatUse,
  monthLinks,
  monthName,
  shownFigures,
  type UseMonth,
  usePlots,
} from '../elements/use-plots.ts';
import { type Html, html } from '../html.ts';

export interface UsageView {
  readonly layout: FormLayoutProps;
  readonly query: {
    readonly by: UseKind;
    readonly sort: UseSort;
    /** Of whom the plots are. */
    readonly name?: string | undefined;
  };
  readonly time: UseMonth;
  readonly found: {
    readonly items: readonly NamedUse[];
    readonly total: number;
    readonly sum: Amounts;
  };
  /** Undefined where the reader may not see everything, and has named nobody. */
  readonly days: readonly UseOfDay[] | undefined;
  readonly sumOfDays: Amounts;
  readonly currency: string;
  readonly maySeeBudgets: boolean;
}

const kindLabels: Readonly<Record<UseKind, Phrase>> = {
  user: text`Users`,
  group: text`Groups`,
  profile: text`Profiles`,
};

/** Who used how much in a month. */
export function usagePage(view: UsageView): Html {
  const { layout, query, time, found, days, sumOfDays: sum, currency } = view;
  const { urls } = layout;
  const urlOf = (asked: Partial<UsageView['query']> & { readonly month?: string }) => {
    const { name, ...fields } = { ...query, month: time.month, ...asked };
    return `${urls.adminUsage}?${new URLSearchParams({ ...fields, ...(name !== undefined && { name }) })}`;
  };
  const chip = (by: UseKind) =>
    html`<a class="chip" href="${urlOf({ by, name: undefined })}"${by === query.by && html` aria-current="true"`}>${kindLabels[by]}</a>`;
  const columns: readonly Column<NamedUse>[] = [
    {
      label: kindLabels[query.by],
      style: 'name',
      cell: ({ name }) => html`<a href="${urlOf({ name })}">${name}</a>`,
    },
    ...shownFigures(found.sum).map(
      ({ sort, amount, label }): Column<NamedUse> => ({
        label,
        heading: html`<a href="${urlOf({ sort })}">${label}</a>${sort === query.sort && html` <span aria-hidden="true">↓</span>`}`,
        sort: sort === query.sort ? 'descending' : undefined,
        cell: (use) => formatUse(amount, use[amount], currency),
      }),
    ),
  ];
  const { items, total } = found;
  return adminLayout(layout, {
    title: text`Use`,
    tab: 'usage',
    body: html`${pageHead(
      query.name === undefined ? text`Use` : text`Use of ${query.name}`,
      monthName(time),
      html`<a class="button" href="${urls.adminHomes}">${text`Home folders`}</a>${view.maySeeBudgets && html`<a class="button" href="${urls.adminBudgets}">${text`Budgets`}</a>`}${monthLinks(time, layout.now, (month) => urlOf({ month }))}`,
    )}
<nav class="chips" aria-label="${text`Sum up by`}">${useKinds.map(chip)}</nav>
${days !== undefined && items.length + days.length > 0 && usePlots(days, { time, sum, currency })}
<section class="block">${
      items.length === 0
        ? html`<p class="empty">${text`Nothing was used in this month.`}</p>`
        : table(text`Use`, columns, items, { style: 'dense' })
    }
${total > items.length && html`<p class="soft">${message('{shown, number} of {total, number} are shown; the file has more.', { shown: items.length, total })}</p>`}
${items.length > 0 && html`<form method="post" action="${urls.adminUsageExport}">${csrfField(layout)}${hiddenFields({ by: query.by, sort: query.sort, month: time.month })}<button class="button">${text`As a CSV file`}</button></form>`}</section>`,
  });
}
