import { z } from 'zod';
import type { UserStore } from '../identity/users/user-store.ts';
import { budgetDefinition } from '../platform/config/usage-schema.ts';
import type { Budgets } from '../workloads/usage/budgets.ts';
import { time } from './models.ts';
import { operation, view } from './operation.ts';

export interface Deps {
  readonly users: Pick<UserStore, 'getByName'>;
  readonly budgets: Pick<Budgets, 'grant' | 'list' | 'set' | 'remove'>;
  /** `Spawner.prices.currency`. */
  readonly currency: string;
}

const budgetModel = z
  .object({
    name: z.string(),
    ...budgetDefinition.shape,
    configured: z.boolean().describe('Whether it is of `Spawner.budgets`, where alone it changes.'),
  })
  .meta({ id: 'Budget', description: 'How much a user, a group or a profile may use.' });

const amount = z.number().positive().max(1e9).optional();

/** How much more may be used than the configuration says. */
export const budgetOperations = [
  operation({
    id: 'listBudgets',
    byCommand: true,
    method: 'GET',
    path: '/budgets',
    tag: 'servers',
    summary: 'List the budgets',
    description: 'Of two of one name, the one of the configuration counts.',
    scopes: ['admin:servers'],
    answers: {
      200: { description: 'All of them.', schema: z.object({ budgets: z.array(budgetModel) }) },
    },
  }).handle(async (_request, { budgets }: Deps) => ({
    status: 200,
    body: {
      budgets: (await budgets.list()).map(({ isConfigured, ...budget }) => ({
        ...budget,
        configured: isConfigured,
      })),
    },
  })),
  operation({
    id: 'setBudget',
    byCommand: true,
    method: 'PUT',
    path: '/budgets/{budget}',
    audit: ['budget.set'],
    log: 'budget set',
    tag: 'servers',
    summary: 'Set a budget, or another in its place',
    description:
      'What was used before counts, too. One of the configuration is changed there alone.',
    scopes: ['admin:servers'],
    needsRecentLogin: true,
    body: budgetDefinition,
    answers: { 204: { description: 'It counts at once.' } },
  }).handle(async ({ params, body }, { budgets }: Deps) => {
    await budgets.set(params.budget, body);
    return { status: 204, logged: { budget: params.budget } };
  }),
  operation({
    id: 'removeBudget',
    byCommand: true,
    method: 'DELETE',
    path: '/budgets/{budget}',
    audit: ['budget.remove'],
    log: 'budget removed',
    tag: 'servers',
    summary: 'Remove a budget that was set at run time',
    scopes: ['admin:servers'],
    needsRecentLogin: true,
    answers: { 204: { description: 'It limits nobody any more.' } },
  }).handle(async ({ params }, { budgets }: Deps) => {
    await budgets.remove(params.budget);
    return { status: 204, logged: { budget: params.budget } };
  }),
  view({ id: 'viewBudgets', path: '/admin/budgets', scopes: ['admin:servers'] }).handle(
    async (_request, { budgets, currency }: Deps) => ({ budgets: await budgets.list(), currency }),
  ),
  operation({
    id: 'grantBudget',
    byCommand: true,
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
      server_hours: amount,
      cpu_hours: amount,
      gib_hours: amount,
      gpu_hours: amount,
      cost: amount,
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
