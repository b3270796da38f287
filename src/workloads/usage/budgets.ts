import type { Config } from '../../platform/config/config.ts';
import {
  type BudgetAmount,
  type BudgetDefinition,
  type BudgetLimits,
  budgetAmounts,
  budgetName,
  windowHoursOf,
} from '../../platform/config/usage-schema.ts';
import { HubError } from '../../platform/errors.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import { exactTime, type Phrase, text, writeNumber, written } from '../../platform/texts/text.ts';
import {
  type Budget,
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

/** How much may be used: `Spawner.budgets`, and what is set at run time under other names. */
export interface Budgets {
  /** All of them; where one of the configuration has the name of one set at run time, it is the one that counts. */
  list(): Promise<readonly (Budget & { readonly isConfigured: boolean })[]>;
  /** Sets one at run time. Throws `bad_request` for a bad name, and `conflict` for that of one of the configuration. */
  set(name: string, definition: BudgetDefinition): Promise<void>;
  /** Removes one that was set at run time. Throws `not_found`, and `conflict` for one of the configuration. */
  remove(name: string): Promise<void>;
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
  const { budgets: configured, prices } = hub.config.Spawner;

  async function list() {
    const names = new Set(configured.map(({ name }) => name));
    const others = (await store.list()).filter(({ name }) => !names.has(name));
    return [
      ...configured.map((budget) => ({ ...budget, isConfigured: true })),
      ...others.map((budget) => ({ ...budget, isConfigured: false })),
    ];
  }

  function requireUnconfigured(name: string): void {
    if (!configured.some((each) => each.name === name)) return;
    throw new HubError('conflict', text`The budget “${name}” is set by the configuration.`);
  }

  async function statesOf(
    subjects: readonly BudgetSubject[],
    given?: readonly Budget[],
  ): Promise<BudgetState[][]> {
    const budgets = given ?? (await list());
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

  async function subjectOf(
    { id, name }: BudgetUser,
    budgets: readonly Budget[],
  ): Promise<BudgetSubject> {
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
    list,
    statesOf: (subjects) => statesOf(subjects),

    async set(name, definition) {
      if (!budgetName.safeParse(name).success) {
        throw new HubError(
          'bad_request',
          text`A budget is called by 1 to 50 of a-z, 0-9, dot, hyphen and underscore.`,
        );
      }
      requireUnconfigured(name);
      await store.set(name, definition);
    },

    async remove(name) {
      requireUnconfigured(name);
      if (!(await store.remove(name))) throw noSuchBudget();
    },

    async ofUser(user, profiles) {
      const budgets = await list();
      if (budgets.length === 0) return [];
      const subject = await subjectOf(user, budgets);
      const subjects = [subject, ...profiles.map((profile) => ({ ...subject, profile }))];
      const states = await statesOf(subjects, budgets);
      const byName = new Map(states.flat().map((state) => [state.budget.name, state]));
      return [...byName.values()].toSorted((left, right) => right.part - left.part);
    },

    async grant({ budget: name, user, amounts, reason }) {
      const budget = (await list()).find((each) => each.name === name);
      if (budget === undefined) throw noSuchBudget();
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
      const budgets = await list();
      if (budgets.length === 0) return;
      const subject = { ...(await subjectOf(user, budgets)), profile };
      const [states = []] = await statesOf([subject], budgets);
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

const noSuchBudget = () => new HubError('not_found', text`There is no such budget.`);

/** Such as `101.2 of 100 CPU hours`. */
export function spent({ used, limit, amount }: BudgetState, currency: string): Phrase {
  const unit = amount === 'cost' ? currency : amountLabels[amount];
  return text`${shortened(used)} of ${shortened(limit)} ${unit}`;
}

const shortened = (value: number): Phrase =>
  written((language) => writeNumber(value, language, { maximumFractionDigits: 1 }));

export const amountLabels: Readonly<Record<Exclude<BudgetAmount, 'cost'>, Phrase>> = {
  server_hours: text`server hours`,
  cpu_hours: text`CPU hours`,
  gib_hours: text`GiB hours`,
  gpu_hours: text`GPU hours`,
};
