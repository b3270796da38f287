import { message, type Phrase, text } from '../../../platform/texts/text.ts';
import { type BudgetState, warnedPart } from '../../../workloads/usage/budget.ts';
import { spent } from '../../../workloads/usage/budgets.ts';
import { type Html, type HtmlValue, html } from '../html.ts';
import type { LayoutProps } from './layout-props.ts';
import { notice } from './notice.ts';

/** How much of each budget is used, and which way it is counted. */
export function budgetList(budgets: readonly BudgetState[], currency: string): HtmlValue {
  if (budgets.length === 0) return false;
  return html`<section class="block" aria-labelledby="budgets-title"><h2 id="budgets-title">${text`Budgets`}</h2>
<dl class="facts">${budgets.map(
    (state) =>
      html`<dt>${state.budget.name}</dt><dd><progress max="1" value="${Math.min(1, state.part)}" aria-label="${state.budget.name}"></progress> ${spent(state, currency)}, ${periodOf(state)}</dd>`,
  )}</dl></section>`;
}

/** Says which budgets are nearly used up, or are. */
export function budgetWarnings(
  { urls }: LayoutProps,
  budgets: readonly BudgetState[],
  currency: string,
): HtmlValue {
  return budgets
    .filter(({ part }) => part >= warnedPart)
    .map((state) => notice(state.part >= 1 ? 'bad' : 'warn', sentence(state, urls, currency)));
}

function sentence(state: BudgetState, urls: LayoutProps['urls'], currency: string): Html {
  const { budget, part } = state;
  const what = html`${spent(state, currency)}, ${periodOf(state)}.`;
  const said =
    part < 1
      ? text`The budget “${budget.name}” is nearly used up: ${what}`
      : text`The budget “${budget.name}” is used up: ${what}`;
  const stops = part < 1 && budget.when_over === 'stop';
  return html`${said} ${stops && text`Your servers are stopped when it is.`} <a href="${urls.usage}">${text`Your use`}</a>`;
}

function periodOf({ budget: { period } }: BudgetState): Phrase {
  const [, amount, unit] = /^(\d+)([hd])$/.exec(period) ?? [];
  const count = Number(amount);
  if (unit === 'h') {
    return message('{count, plural, one {in the last hour} other {in the last # hours}}', {
      count,
    });
  }
  if (unit === 'd') {
    return message('{count, plural, one {in the last day} other {in the last # days}}', { count });
  }
  if (period === 'day') return text`today (UTC)`;
  return period === 'week' ? text`this week` : text`this month`;
}
