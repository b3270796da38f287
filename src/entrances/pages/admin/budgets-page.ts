import { budgetAmounts } from '../../../platform/config/usage-schema.ts';
import { type Phrase, text } from '../../../platform/texts/text.ts';
import type { Budget } from '../../../workloads/usage/budget.ts';
import { amountLabels } from '../../../workloads/usage/budgets.ts';
import { useKinds } from '../../../workloads/usage/usage-store.ts';
import { actionForm, csrfField, selectField, textField } from '../elements/form.ts';
import { adminLayout, pageHead } from '../elements/layout.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { notice } from '../elements/notice.ts';
import { table } from '../elements/table.ts';
import { useFigures } from '../elements/use-plots.ts';
import { type Html, html } from '../html.ts';

export interface BudgetsView {
  readonly layout: FormLayoutProps;
  readonly budgets: readonly (Budget & { readonly isConfigured: boolean })[];
  readonly currency: string;
  /** What the form holds, by its fields. */
  readonly typed: Readonly<Record<string, string>>;
  readonly problem?: Phrase | undefined;
}

/** Budgets, and the form that sets one: `name`, `kind`, `who`, `period`, `sharing`, `when_over`, and amounts. */
export function budgetsPage({ layout, budgets, currency, typed, problem }: BudgetsView): Html {
  const { urls } = layout;
  return adminLayout(layout, {
    title: text`Budgets`,
    tab: 'usage',
    body: html`${pageHead(text`Budgets`, text`How much users, groups and profiles may use. All budgets that apply must have something left.`)}
<section class="block">${
      budgets.length === 0
        ? html`<p class="empty">${text`There are no budgets.`}</p>`
        : table(
            text`Budgets`,
            [
              {
                label: text`Name`,
                style: 'name',
                cell: ({ name, isConfigured }) =>
                  isConfigured
                    ? html`${name}<span class="under">${text`Set by the configuration`}</span>`
                    : html`<a href="${`${urls.adminBudgets}?name=${encodeURIComponent(name)}`}">${name}</a>`,
              },
              {
                label: text`Whose`,
                cell({ user, group, profile }) {
                  if (user !== undefined) return user === '*' ? text`Each user` : user;
                  return group === undefined
                    ? text`Profile ${profile ?? ''}`
                    : text`Group ${group}`;
                },
              },
              { label: text`Period`, cell: ({ period }) => period },
              {
                label: text`Limits`,
                cell: (budget) =>
                  budgetAmounts.flatMap((amount) => {
                    const limit = budget[amount];
                    if (limit === undefined) return [];
                    const unit = amount === 'cost' ? currency : amountLabels[amount];
                    return html`<span class="one-word">${limit} ${unit}</span> `;
                  }),
              },
              {
                label: text`Actions`,
                style: 'end',
                cell: ({ name, isConfigured }) =>
                  !isConfigured &&
                  html`<div class="actions">${actionForm(layout, { action: urls.adminRemoveBudget, label: text`Remove`, accessibleLabel: text`Remove ${name}`, style: 'small danger', fields: { name } })}</div>`,
              },
            ],
            budgets,
          )
    }</section>
<section class="block" aria-labelledby="set-title"><h2 id="set-title">${text`Set a budget`}</h2>
${problem !== undefined && html`<div class="page-notice">${notice('bad', problem)}</div>`}
<form class="fields" method="post" action="${urls.adminBudgets}">${csrfField(layout)}
${textField({ name: 'name', label: text`Name`, value: typed['name'], isLiteral: true, help: text`One of the same name is changed.` })}
${selectField({
  name: 'kind',
  label: text`Whose`,
  value: typed['kind'],
  choices: [
    { value: 'user', label: text`User` },
    { value: 'group', label: text`Group` },
    { value: 'profile', label: text`Profile` },
  ],
})}
${textField({ name: 'who', label: text`Name of the user, group or profile`, value: typed['who'], isLiteral: true, help: text`* is each user.` })}
${textField({ name: 'period', label: text`Period`, value: typed['period'], isLiteral: true, help: text`day, week or month (UTC), or the time that has just passed, such as 48h or 7d.` })}
${useFigures.map(({ sort: name, label }) => textField({ name, label, type: 'number', min: 0, isOptional: true, value: typed[name] }))}
${selectField({
  name: 'sharing',
  label: text`Members of a group`,
  value: typed['sharing'],
  choices: [
    { value: 'together', label: text`use it together` },
    { value: 'divided', label: text`have equal parts of it` },
  ],
})}
${selectField({
  name: 'when_over',
  label: text`Running servers`,
  value: typed['when_over'],
  choices: [
    { value: 'stop', label: text`are stopped when it is used up` },
    { value: 'keep', label: text`go on when it is used up` },
  ],
})}
<div class="actions"><button class="button primary">${text`Save`}</button><a class="button" href="${urls.adminUsage}">${text`Back to use`}</a></div>
</form></section>`,
  });
}

/** The fields of the form for a budget. */
export function fieldsOf(budget: Budget): Readonly<Record<string, string>> {
  const { user, group, profile, ...rest } = budget;
  const kind = useKinds.find((each) => budget[each] !== undefined) ?? 'user';
  const fields = { ...rest, kind, who: user ?? group ?? profile ?? '' };
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, String(value)]));
}
