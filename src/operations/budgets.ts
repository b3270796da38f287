import { z } from 'zod';
import type { UserStore } from '../identity/users/user-store.ts';
import { budgetAmounts } from '../platform/config/usage-schema.ts';
import type { Budgets } from '../workloads/usage/budgets.ts';
import { time } from './models.ts';
import { operation } from './operation.ts';

export interface Deps {
  readonly users: Pick<UserStore, 'getByName'>;
  readonly budgets: Pick<Budgets, 'grant'>;
}

const amount = z.number().positive().max(1e9).optional();
const [server_hours, cpu_hours, gib_hours, gpu_hours, cost] = budgetAmounts;

/** How much more may be used than the configuration says. */
export const budgetOperations = [
  operation({
    id: 'grantBudget',
    byCommand: 'by_running_hub',
    method: 'POST',
    path: '/budgets/{budget}/grants',
    audit: ['budget.grant'],
    log: 'more of a budget granted',
    tag: 'servers',
    summary: 'Grant more of a budget, until its period ends',
    description: 'Of a time that passes, such as `7d`, for as long from now on.',
    scopes: ['admin:servers'],
    needsRecentLogin: true,
    body: z.strictObject({
      user: z.string().optional().describe('Whom; all who use it unless given.'),
      reason: z.string().trim().min(1).max(500).describe('For the audit log.'),
      [server_hours]: amount,
      [cpu_hours]: amount,
      [gib_hours]: amount,
      [gpu_hours]: amount,
      [cost]: amount,
    }),
    answers: {
      201: { description: 'It can be used at once.', schema: z.object({ expires_at: time }) },
    },
  }).handle(async ({ params, body }, { users, budgets }: Deps) => {
    const { user: name, reason, ...amounts } = body;
    const user = name === undefined ? undefined : await users.getByName(name);
    const { expiresAt } = await budgets.grant({ budget: params.budget, user, amounts, reason });
    return {
      status: 201,
      body: { expires_at: new Date(expiresAt).toISOString() },
      logged: { budget: params.budget },
    };
  }),
];
