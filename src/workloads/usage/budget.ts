import type { SpawnerConfig } from '../../platform/config/config.ts';
import {
  type BudgetAmount,
  type BudgetLimits,
  budgetAmounts,
  windowHoursOf,
} from '../../platform/config/usage-schema.ts';
import type { SumAsked } from './budget-store.ts';
import { type Amounts, hourMs } from './count-use.ts';
import { dayMs, startOfDay, startOfMonth } from './ledger-store.ts';

/** A budget, wherever it was set. */
export type Budget = SpawnerConfig['budgets'][number];

/** Whose use it is that budgets limit. */
export interface BudgetSubject {
  readonly userId: string;
  readonly userName: string;
  readonly groups: readonly { readonly id: string; readonly name: string }[];
  /** Undefined for whatever a user may choose: then no budget of a profile counts. */
  readonly profile: string | undefined;
}

/** How much of a budget is used. */
export interface BudgetState {
  readonly budget: Budget;
  /** Of what limits it most. */
  readonly amount: BudgetAmount;
  /** In hours or money. */
  readonly used: number;
  readonly limit: number;
  /** Of all amounts, the one that is nearest to its limit; 1 is used up. */
  readonly part: number;
}

/** From this part on its users are warned. */
export const warnedPart = 0.8;

/** What is counted against a budget for somebody; undefined where it is not theirs. */
export function countedAgainst(
  budget: Budget,
  subject: BudgetSubject,
  nowMs: number,
): (SumAsked & { readonly groupId?: string }) | undefined {
  const time = periodOf(budget, nowMs);
  const { user, group, profile } = budget;
  if (profile !== undefined) {
    return profile === subject.profile ? { kind: 'profile', subject: profile, ...time } : undefined;
  }
  const own = { kind: 'user', subject: subject.userId, ...time } as const;
  if (group === undefined) return user === '*' || user === subject.userName ? own : undefined;
  const found = subject.groups.find(({ name }) => name === group);
  if (found === undefined) return undefined;
  return budget.sharing === 'divided'
    ? { ...own, groupId: found.id }
    : { kind: 'group', subject: found.id, ...time };
}

/** Since when use counts, and by which rows that is summed up fastest. */
function periodOf(
  { period }: Pick<Budget, 'period'>,
  nowMs: number,
): Pick<SumAsked, 'span' | 'from'> {
  if (period === 'month') return { span: 'month', from: startOfMonth(nowMs) };
  const day = startOfDay(nowMs);
  if (period === 'day') return { span: 'day', from: day };
  if (period === 'week') {
    // The day 0 of the calendar was a Thursday.
    return { span: 'day', from: day - ((day / dayMs + 3) % 7) * dayMs };
  }
  const from = nowMs - windowHoursOf(period) * hourMs;
  return { span: 'hour', from: from - (from % hourMs) };
}

/** When a period of the calendar ends; undefined for a time that passes. */
export function periodEnd({ period }: Pick<Budget, 'period'>, nowMs: number): number | undefined {
  const { from } = periodOf({ period }, nowMs);
  if (period === 'day') return from + dayMs;
  if (period === 'week') return from + 7 * dayMs;
  if (period === 'month') return startOfMonth(from + 32 * dayMs);
  return undefined;
}

/** The state of a budget by what was used, with what was granted beside it. */
export function stateOf(
  budget: Budget,
  used: Amounts,
  given: { readonly members: number; readonly granted: readonly BudgetLimits[] },
): BudgetState {
  const share = budget.sharing === 'divided' ? Math.max(1, given.members) : 1;
  const states = budgetAmounts.flatMap((amount) => {
    const own = budget[amount];
    if (own === undefined) return [];
    const limit = given.granted.reduce((sum, each) => sum + (each[amount] ?? 0), own / share);
    const sum = usedOf(amount, used);
    return [{ budget, amount, used: sum, limit, part: sum / limit }];
  });
  const [first] = states.toSorted((left, right) => right.part - left.part);
  if (first === undefined) throw new TypeError('a budget limits something');
  return first;
}

/** An amount in hours, or in money. */
export function usedOf(amount: BudgetAmount, amounts: Amounts): number {
  const { wallSeconds, cpuSeconds, gibSeconds, gpuSeconds, cost } = amounts;
  const bySeconds = {
    server_hours: wallSeconds,
    cpu_hours: cpuSeconds,
    gib_hours: gibSeconds,
    gpu_hours: gpuSeconds,
  };
  return amount === 'cost' ? cost : bySeconds[amount] / 3600;
}

/** From when on a time that passes has room again, as the oldest hours fall out of it. */
export function freeAgainAt(
  budget: Budget,
  { amount, limit }: Pick<BudgetState, 'amount' | 'limit'>,
  hours: readonly (Amounts & { readonly at: number })[],
): number | undefined {
  let left = hours.reduce((sum, hour) => sum + usedOf(amount, hour), 0);
  for (const hour of hours) {
    left -= usedOf(amount, hour);
    if (left < limit) return hour.at + (windowHoursOf(budget.period) + 1) * hourMs;
  }
  return undefined;
}
