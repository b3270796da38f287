import type { BodyOf } from '../../../operations/operations.ts';
import { budgetAmounts } from '../../../platform/config/usage-schema.ts';
import { text } from '../../../platform/texts/text.ts';
import type { BoundPages, ModelOf, Shown } from '../forms/binding.ts';
import { budgetsPage, fieldsOf } from './budgets-page.ts';

/** `/hub/admin/budgets`: how much may be used. */
export function adminBudgetRoutes({ page, form, pages: { urls } }: BoundPages): void {
  const draw = ({ layout, model, search, failure }: Shown<ModelOf<'viewBudgets'>>) => {
    const chosen = model.budgets.find(({ name }) => name === search.get('name'));
    const typed =
      failure === undefined ? chosen && fieldsOf(chosen) : Object.fromEntries(failure.sent);
    return budgetsPage({ layout, ...model, typed: typed ?? {}, problem: failure?.problem });
  };
  const show = page('/admin/budgets', 'viewBudgets', draw, { query: ['name'] });

  form('/admin/budgets', 'setBudget', {
    params: (sent) => ({ budget: (sent.get('name') ?? '').trim() }),
    body(sent) {
      const typed = (field: string) => (sent.get(field) ?? '').trim();
      const amounts = budgetAmounts.filter((amount) => typed(amount) !== '');
      return {
        [typed('kind')]: typed('who'),
        period: typed('period'),
        sharing: typed('sharing'),
        when_over: typed('when_over'),
        ...Object.fromEntries(amounts.map((amount) => [amount, Number(typed(amount))])),
      } as BodyOf<'setBudget'>;
    },
    done: ({ params: { budget = '' } }) => ({
      to: urls.adminBudgets,
      say: text`The budget ${budget} is set.`,
    }),
    again: show,
  });

  form('/admin/budgets/remove', 'removeBudget', {
    params: (sent) => ({ budget: sent.get('name') ?? '' }),
    done: ({ params: { budget = '' } }) => ({
      to: urls.adminBudgets,
      say: text`The budget ${budget} is removed.`,
    }),
  });
}
