import { z } from 'zod';

const price = z.number().nonnegative();

const profilePrices = z.strictObject({
  cpu_hour: price.optional().describe('Of a core in use for an hour.'),
  gib_hour: price.optional().describe('Of a GiB of memory for an hour.'),
  gpu_hour: price.optional().describe('Of a GPU that a server has for an hour.'),
  server_hour: price.optional().describe('Of an hour of a server, whatever it does.'),
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
    currency: z.string().max(12).default('').describe('Written behind sums, such as `€`.'),
  })
  .prefault({})
  .describe('Prices of use. What was used before a change keeps the price of its time.');

const amount = z.number().positive();
const periodPattern = /^(?:day|week|month|[1-9]\d{0,3}h|[1-9]\d?d)$/;
const maxWindowHours = 90 * 24;

/** What a budget is, wherever it is set. */
const budgetShape = {
  user: z.string().min(1).optional().describe('Of this user; `*` of each user.'),
  group: z.string().min(1).optional().describe('Of the members of this group.'),
  profile: z.string().min(1).optional().describe('Of all servers of this profile.'),
  period: z
    .string()
    .regex(periodPattern, 'must be day, week, month, or a time such as 48h or 7d')
    .refine((period) => windowHoursOf(period) <= maxWindowHours, 'must be 90 days at most')
    .describe(
      '`day`, `week` (from Monday) or `month`, by UTC; or the time that has just passed, such as `48h` or `7d`.',
    ),
  server_hours: amount.optional().describe('Hours of running servers.'),
  cpu_hours: amount.optional().describe('Hours of cores in use.'),
  gib_hours: amount.optional().describe('Hours of GiB of memory in use.'),
  gpu_hours: amount.optional().describe('Hours of GPUs that servers have.'),
  cost: amount.optional().describe('By `Spawner.prices`.'),
  sharing: z
    .enum(['together', 'divided'])
    .default('together')
    .describe(
      'Whether the members of a group use it together, or each has an equal part of it, for all that they use.',
    ),
  when_over: z
    .enum(['stop', 'keep'])
    .default('stop')
    .describe('What becomes of running servers once it is used up.'),
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
  .describe('How much users, groups and profiles may use. Of several, each must have room.');
