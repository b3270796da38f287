import type { Config } from '../../platform/config/config.ts';
import {
  type BudgetAmount,
  type BudgetLimits,
  budgetAmounts,
  windowHoursOf,
} from '../../platform/config/usage-schema.ts';
import { HubError } from '../../platform/errors.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import { exactTime, type Phrase, text, writeNumber, written } from '../../platform/texts/text.ts';
import {
  type BudgetState,
  type BudgetSubject,
  countedAgainst,
  freeAgainAt,
  periodEnd,
  stateOf,
} from './budget.ts';
import type { BudgetStore } from './budget-store.ts';
import { hourMs } from './count-use.ts';

interface BudgetUser {
  readonly id: string;
  readonly name: string;
}

/** How much may be used (`Spawner.budgets`). */
export interface Budgets {
  /** The states of the budgets of some, in their order; a fixed number of statements, however many they are. */
  statesOf(subjects: readonly BudgetSubject[]): Promise<readonly (readonly BudgetState[])[]>;
  /** Those of a user, and of the profiles of their servers; the one that is used up most comes first. */
  ofUser(user: BudgetUser, profiles: readonly string[]): Promise<readonly BudgetState[]>;
  /**
   * Grants more of a budget, to one of its users or to all, until its period ends or for the given time. Throws
   * `not_found`, and `bad_request` for what the budget does not limit.
   */
  grant(grant: {
    readonly budget: string;
    readonly user: BudgetUser | undefined;
    readonly amounts: BudgetLimits;
    readonly reason: string;
  }): Promise<{ readonly expiresAt: number }>;
  /** Throws `forbidden` where a budget is used up, with the sum and the moment from which there is room again. */
  requireBudget(user: BudgetUser, profile: string | undefined): Promise<void>;
}

export function createBudgets(hub: {
  readonly database: Pick<HubDatabase, 'now'>;
  readonly budgetStore: BudgetStore;
  readonly config: Pick<Config, 'Spawner'>;
}): Budgets {
  const { budgetStore: store, database } = hub;
  const { budgets, prices } = hub.config.Spawner;

  async function statesOf(subjects: readonly BudgetSubject[]): Promise<BudgetState[][]> {
    const nowMs = database.now();
    const asked = subjects.flatMap((subject, place) =>
      budgets.flatMap((budget) => {
        const sum = countedAgainst(budget, subject, nowMs);
        return sum === undefined ? [] : [{ place, subject, budget, sum }];
      }),
    );
    const states: BudgetState[][] = subjects.map(() => []);
    if (asked.length === 0) return states;
    const groupIds = [...new Set(asked.flatMap(({ sum }) => sum.groupId ?? []))];
    const [sums, members, grants] = await Promise.all([
      store.sums(asked.map(({ sum }) => sum)),
      store.memberCounts(groupIds),
      store.grants(nowMs),
    ]);
    for (const [index, { place, subject, budget, sum }] of asked.entries()) {
      const used = sums[index];
      if (used === undefined) continue;
      const granted = grants
        .filter((grant) => grant.budget === budget.name)
        .filter(({ userId }) => userId === undefined || userId === subject.userId)
        .map(({ amounts }) => amounts);
      const given = { granted, members: members.get(sum.groupId ?? '') ?? 1 };
      states[place]?.push(stateOf(budget, used, given));
    }
    return states;
  }

  async function subjectOf({ id, name }: BudgetUser): Promise<BudgetSubject> {
    const hasGroups = budgets.some(({ group }) => group !== undefined);
    const groups = hasGroups ? await store.groupsOf(id) : [];
    return { userId: id, userName: name, groups, profile: undefined };
  }

  async function freeAt(state: BudgetState, subject: BudgetSubject): Promise<number | undefined> {
    const nowMs = database.now();
    const end = periodEnd(state.budget, nowMs);
    if (end !== undefined) return end;
    const sum = countedAgainst(state.budget, subject, nowMs);
    return sum && freeAgainAt(state.budget, state, await store.hours(sum));
  }

  return {
    statesOf,

    async ofUser(user, profiles) {
      if (budgets.length === 0) return [];
      const subject = await subjectOf(user);
      const states = await statesOf([
        subject,
        ...profiles.map((profile) => ({ ...subject, profile })),
      ]);
      const byName = new Map(states.flat().map((state) => [state.budget.name, state]));
      return [...byName.values()].toSorted((left, right) => right.part - left.part);
    },

    async grant({ budget: name, user, amounts, reason }) {
      const budget = budgets.find((each) => each.name === name);
      if (budget === undefined) throw new HubError('not_found', text`There is no such budget.`);
      const given = budgetAmounts.filter((amount) => amounts[amount] !== undefined);
      if (given.length === 0 || given.some((amount) => budget[amount] === undefined)) {
        throw new HubError('bad_request', text`Grant some of what the budget limits.`);
      }
      const nowMs = database.now();
      const expiresAt = periodEnd(budget, nowMs) ?? nowMs + windowHoursOf(budget.period) * hourMs;
      const { id: userId, name: userName } = user ?? {};
      await store.grant({ budget: name, userId, userName, amounts, reason, expiresAt });
      return { expiresAt };
    },

    async requireBudget(user, profile) {
      if (budgets.length === 0) return;
      const subject = { ...(await subjectOf(user)), profile };
      const [states = []] = await statesOf([subject]);
      const over = states.filter(({ part }) => part >= 1);
      const [state] = over;
      if (state === undefined) return;
      // Each of them must have room.
      const times = await Promise.all(over.map((each) => freeAt(each, subject)));
      const at = times.includes(undefined) ? undefined : Math.max(...times.map(Number));
      const hint =
        at === undefined
          ? text`Ask an administrator for more.`
          : text`There is room again from ${exactTime(new Date(at))} on; an administrator can grant more before.`;
      throw new HubError(
        'forbidden',
        text`The budget “${state.budget.name}” is used up: ${spent(state, prices.currency)}.`,
        { hint },
      );
    },
  };
}

/** Such as `101.2 of 100 CPU hours`. */
export function spent({ used, limit, amount }: BudgetState, currency: string): Phrase {
  const unit = amount === 'cost' ? currency : amountLabels[amount];
  return text`${shortened(used)} of ${shortened(limit)} ${unit}`;
}

const shortened = (value: number): Phrase =>
  written((language) => writeNumber(value, language, { maximumFractionDigits: 1 }));

const amountLabels: Readonly<Record<Exclude<BudgetAmount, 'cost'>, Phrase>> = {
  server_hours: text`server hours`,
  cpu_hours: text`CPU hours`,
  gib_hours: text`GiB hours`,
  gpu_hours: text`GPU hours`,
};
