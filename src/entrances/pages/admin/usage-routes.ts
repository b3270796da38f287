import type { BodyOf } from '../../../operations/operations.ts';
import { toCsv } from '../csv.ts';
import { bordersOf } from '../elements/table.ts';
import type { BoundPages, ModelOf } from '../forms/binding.ts';
import { homesPage } from './homes-page.ts';
import { usagePage } from './usage-page.ts';

/** `/hub/admin/usage`: who used how much; `/hub/admin/homes`: how full homes are. */
export function adminUsageRoutes({ page, form }: BoundPages): void {
  page('/admin/usage', 'viewUsage', ({ layout, model, may }) =>
    usagePage({ layout, ...model, maySeeBudgets: may('viewBudgets') }),
  );

  page('/admin/homes', 'viewHomes', ({ layout, model }) =>
    homesPage({
      layout,
      homes: model.items,
      total: model.total,
      borders: bordersOf(model, ({ key }) => key),
    }),
  );

  form('/admin/usage.csv', 'exportUsage', {
    body: (sent) => Object.fromEntries(sent) as BodyOf<'exportUsage'>,
    done: ({ result }) => ({
      file: {
        name: `usage-${result.month}.csv`,
        type: 'text/csv; charset=utf-8',
        text: toCsv([columns, ...rowsOf(result)]),
      },
    }),
  });
}

/**
 * Columns of FOCUS 1.2 (FinOps Open Cost and Usage Specification), those of our own with the prefix that it asks for.
 */
const columns = [
  'ChargePeriodStart',
  'ChargePeriodEnd',
  'ChargeCategory',
  'BillingCurrency',
  'BilledCost',
  'EffectiveCost',
  'SubAccountType',
  'SubAccountName',
  'x_ServerHours',
  'x_CpuHours',
  'x_GibHours',
  'x_GpuHours',
];

function rowsOf({ by, month, currency, items }: ModelOf<'exportUsage'>): string[][] {
  const start = new Date(`${month}-01T00:00:00Z`);
  const end = new Date(Date.UTC(start.getUTCFullYear(), start.getUTCMonth() + 1));
  const period = [start, end].map((each) => each.toISOString());
  return items.map(({ name, cost, server_hours, cpu_hours, gib_hours, gpu_hours }) => [
    ...period,
    'Usage',
    currency,
    String(cost),
    String(cost),
    by,
    name,
    ...[server_hours, cpu_hours, gib_hours, gpu_hours].map(String),
  ]);
}
