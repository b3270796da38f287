import { z } from 'zod';

const price = z.number().nonnegative();

const profilePrices = z.strictObject({
  cpu_hour: price.optional().describe('Per core hour used.'),
  gib_hour: price.optional().describe('Per GiB hour of memory used.'),
  gpu_hour: price.optional().describe('Per GPU hour allocated.'),
  server_hour: price.optional().describe('Per server hour, busy or not.'),
});

/** What use costs with a profile. */
export const profilePricesSchema = profilePrices
  .optional()
  .describe('In place of those of Spawner.prices.');

const { cpu_hour, gib_hour, gpu_hour, server_hour } = profilePrices.shape;

/** What use costs. */
export const pricesSchema = z
  .strictObject({
    cpu_hour: cpu_hour.unwrap().default(0),
    gib_hour: gib_hour.unwrap().default(0),
    gpu_hour: gpu_hour.unwrap().default(0),
    server_hour: server_hour.unwrap().default(0),
    currency: z.string().max(12).default('').describe('Shown after amounts, such as `€`.'),
  })
  .prefault({})
  .describe('Prices of use. Changes do not affect past use.');

const amount = z.number().positive();
const periodPattern = /^(?:day|week|month|[1-9]\d{0,3}h|[1-9]\d?d)$/;
const maxWindowHours = 90 * 24;

/** What a budget is, wherever it is set. */
const budgetShape = {
  user: z.string().min(1).optional().describe('Applies to this user; `*` for each user.'),
  group: z.string().min(1).optional().describe('Applies to the members of this group.'),
  profile: z.string().min(1).optional().describe('Applies to all servers of this profile.'),
  period: z
    .string()
    .regex(periodPattern, 'must be day, week, month, or a time such as 48h or 7d')
    .refine((period) => windowHoursOf(period) <= maxWindowHours, 'must be 90 days at most')
    .describe(
      '`day`, `week` (from Monday) or `month`, in UTC; or a rolling window such as `48h` or `7d`.',
    ),
  server_hours: amount.optional().describe('Server hours.'),
  cpu_hours: amount.optional().describe('Core hours used.'),
  gib_hours: amount.optional().describe('GiB hours of memory used.'),
  gpu_hours: amount.optional().describe('GPU hours allocated.'),
  cost: amount.optional().describe('Amount of money, by `Spawner.prices`.'),
  sharing: z
    .enum(['together', 'divided'])
    .default('together')
    .describe('Whether the members of a group share it, or each gets an equal part.'),
  when_over: z
    .enum(['stop', 'keep'])
    .default('stop')
    .describe('What happens to running servers once it is used up.'),
} as const;

/** What budgets limit. */
export const budgetAmounts = [
  'server_hours',
  'cpu_hours',
  'gib_hours',
  'gpu_hours',
  'cost',
] as const;

export type BudgetAmount = (typeof budgetAmounts)[number];
/** How much of what. */
export type BudgetLimits = { readonly [Amount in BudgetAmount]?: number | undefined };

/** Whether a budget says of whom it is, and of how much. */
function budgetProblem(
  budget: {
    readonly [Key in keyof typeof budgetShape]?: unknown;
  },
): string | undefined {
  const { user, group, profile, sharing } = budget;
  const subjects = [user, group, profile].filter((each) => each !== undefined);
  if (subjects.length !== 1) return 'must name one of user, group and profile';
  if (budgetAmounts.every((key) => budget[key] === undefined)) {
    return `must limit one of ${budgetAmounts.join(', ')}`;
  }
  if (sharing === 'divided' && group === undefined) return 'can be divided among a group only';
  return undefined;
}

/** The hours of a time that passes; 0 for a period of the calendar. */
export function windowHoursOf(period: string): number {
  const [, count = 0, unit] = /^(\d+)([hd])$/.exec(period) ?? [];
  return Number(count) * (unit === 'd' ? 24 : 1);
}

function requireWhole(
  budget: Parameters<typeof budgetProblem>[0],
  context: z.core.$RefinementCtx,
): void {
  const problem = budgetProblem(budget);
  if (problem !== undefined) context.addIssue({ code: 'custom', message: problem });
}

/** A budget without its name. */
export const budgetDefinition = z.strictObject(budgetShape).superRefine(requireWhole);
export type BudgetDefinition = z.output<typeof budgetDefinition>;

/** What a budget is called. */
export const budgetName = z
  .string()
  .regex(
    /^[a-z0-9](?:[a-z0-9._-]{0,49})$/,
    'must be 1 to 50 of a-z, 0-9, dot, hyphen and underscore',
  );

/** How much may be used. */
export const budgetsSchema = z
  .array(
    z
      .strictObject({ name: budgetName.describe('Unique among budgets.'), ...budgetShape })
      .superRefine(requireWhole),
  )
  .default([])
  .describe(
    'How much users, groups and profiles may use. All budgets that apply must have something left.',
  );
