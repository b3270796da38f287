import { type Phrase, type Text, text, written } from '../../../platform/texts/text.ts';
import type { Amounts } from '../../../workloads/usage/count-use.ts';
import type { UseOfDay, UseSort } from '../../../workloads/usage/usage-store.ts';
import { type Html, type HtmlValue, html } from '../html.ts';
import { formatNumber, formatSum } from './quantity.ts';

/** A month of use (UTC). */
export interface UseMonth {
  readonly month: string;
  readonly from: number;
  readonly to: number;
}

interface UseFigure {
  readonly sort: UseSort;
  readonly amount: keyof Amounts;
  readonly label: Phrase;
}

/** What use is shown of, in its order. */
export const useFigures: readonly UseFigure[] = [
  { sort: 'server_hours', amount: 'wallSeconds', label: text`Server hours` },
  { sort: 'cpu_hours', amount: 'cpuSeconds', label: text`CPU hours` },
  { sort: 'gib_hours', amount: 'gibSeconds', label: text`GiB hours` },
  { sort: 'gpu_hours', amount: 'gpuSeconds', label: text`GPU hours` },
  { sort: 'cost', amount: 'cost', label: text`Cost` },
];

/** Those of which there is something, and those that every hub has. */
export function shownFigures(sum: Amounts): readonly UseFigure[] {
  return useFigures.filter(
    ({ amount }) => amount === 'wallSeconds' || amount === 'cpuSeconds' || sum[amount] > 0,
  );
}

/** An amount as people read it. */
export function formatUse(amount: keyof Amounts, value: number, currency: string): Phrase {
  if (amount === 'cost') return formatSum(value, currency);
  const hours = value / 3600;
  return formatNumber(hours, hours < 100 ? 1 : 0);
}

/** The name of a month: `November 2026`. */
export function monthName({ from }: Pick<UseMonth, 'from'>): Text {
  const options = { month: 'long', year: 'numeric', timeZone: 'UTC' } as const;
  return inLanguage('month', options, from);
}

function inLanguage(name: string, options: Intl.DateTimeFormatOptions, ms: number): Text {
  return written((language) =>
    language.format(name, (tag) => new Intl.DateTimeFormat(tag, options)).format(ms),
  );
}

/** Ways to the months before and after. */
export function monthLinks(
  { from, to }: UseMonth,
  now: Date,
  urlOf: (month: string) => string,
): Html {
  const link = (ms: number, rel: 'prev' | 'next') =>
    html`<a class="button small" rel="${rel}" href="${urlOf(new Date(ms).toISOString().slice(0, 7))}">${monthName({ from: ms })}</a>`;
  return html`<div class="actions">${link(from - 1 - 27 * dayMs, 'prev')}${to <= now.getTime() && link(to, 'next')}</div>`;
}

const dayMs = 86_400_000;
const height = 100;

/** Bars for the days of a month, and the same as a table. */
export function usePlots(
  days: readonly UseOfDay[],
  view: { readonly time: UseMonth; readonly sum: Amounts; readonly currency: string },
): HtmlValue {
  const { time, sum, currency } = view;
  if (days.length === 0) return html`<p class="empty">${text`Nothing was used in this month.`}</p>`;
  const figures = shownFigures(sum);
  return html`<div class="plots">${figures.map((figure) => bars(days, figure, view))}</div>
<details class="more"><summary>${text`The figures as a table`}</summary><table class="figures"><caption class="visually-hidden">${text`Use by day in ${monthName(time)}`}</caption>
<thead><tr><th scope="col">${text`Day`}</th>${figures.map(({ label }) => html`<th scope="col">${label}</th>`)}</tr></thead>
<tbody>${days.map(
    (day) =>
      html`<tr><th scope="row">${dayName(day.at)}</th>${figures.map(({ amount }) => html`<td>${formatUse(amount, day[amount], currency)}</td>`)}</tr>`,
  )}</tbody></table></details>`;
}

const dayName = (ms: number): Text =>
  inLanguage('day of month', { day: 'numeric', month: 'short', timeZone: 'UTC' }, ms);

function bars(
  days: readonly UseOfDay[],
  { amount, label }: UseFigure,
  {
    time,
    sum,
    currency,
  }: { readonly time: UseMonth; readonly sum: Amounts; readonly currency: string },
): Html {
  const top = Math.max(...days.map((day) => day[amount]));
  const path = days.map((day) => {
    const tall = Math.round((day[amount] / (top || 1)) * height);
    return `M${(day.at - time.from) / dayMs + 0.1} ${height}v-${tall}h.8v${tall}z`;
  });
  const most = formatUse(amount, top, currency);
  return html`<figure class="plot">
<figcaption>${label} <b>${formatUse(amount, sum[amount], currency)}</b> <span class="soft">${text`at most ${most} in a day`}</span></figcaption>
<svg viewBox="0 0 ${(time.to - time.from) / dayMs} ${height}" preserveAspectRatio="none" role="img"><title>${text`${label} by day in ${monthName(time)}: at most ${most}`}</title><path class="bars" d="${path.join('')}"/></svg>
<p class="axis" aria-hidden="true"><span>${dayName(time.from)}</span><span>${text`top: ${most}`}</span><span>${dayName(time.to - 1)}</span></p>
</figure>`;
}
