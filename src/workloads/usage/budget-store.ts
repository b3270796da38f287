import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import type { BudgetDefinition, BudgetLimits } from '../../platform/config/usage-schema.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import { jsonRows, textsOf } from '../../platform/store/queries.ts';
import { type Amounts, noUse } from './count-use.ts';

/** A sum that is asked for: of a subject, since a time. */
export interface SumAsked {
  readonly kind: 'user' | 'group' | 'profile';
  readonly subject: string;
  readonly span: 'hour' | 'day' | 'month';
  readonly from: number;
}

/** What was granted beside a budget until a time. */
export interface Grant {
  readonly budget: string;
  /** Undefined for all who use it. */
  readonly userId: string | undefined;
  readonly amounts: BudgetLimits;
}

/** What counts against budgets: each call is one statement, however many there are. */
export interface BudgetStore {
  /** Those that were set at run time, by name. */
  list(): Promise<readonly (BudgetDefinition & { readonly name: string })[]>;
  /** Sets one, or another in its place. */
  set(name: string, definition: BudgetDefinition): Promise<void>;
  /** Removes one, with what was granted beside it; false where there is none. */
  remove(name: string): Promise<boolean>;
  /** The sums that are asked for, in their order. */
  sums(asked: readonly SumAsked[]): Promise<readonly Amounts[]>;
  /** Grants more until a time, with a reason for the audit log. */
  grant(
    grant: Grant & {
      readonly userName: string | undefined;
      readonly reason: string;
      readonly expiresAt: number;
    },
  ): Promise<void>;
  /** Those that have not expired. */
  grants(nowMs: number): Promise<readonly Grant[]>;
  /** How many users are in each group, by the ids of the groups. */
  memberCounts(groupIds: readonly string[]): Promise<ReadonlyMap<string, number>>;
  /** The groups of a user. */
  groupsOf(userId: string): Promise<readonly { readonly id: string; readonly name: string }[]>;
  /** What a subject used by the hour since a time, the oldest first. */
  hours(asked: SumAsked): Promise<readonly (Amounts & { readonly at: number })[]>;
}

export function createBudgetStore(database: HubDatabase): BudgetStore {
  const { kysely } = database;

  return {
    async list() {
      const rows = await kysely.selectFrom('budgets').selectAll().orderBy('name').execute();
      return rows.map(({ name, definition }) => ({
        ...(JSON.parse(definition) as BudgetDefinition),
        name,
      }));
    },

    async set(name, budget) {
      const definition = JSON.stringify(budget);
      await database.transaction(async (transaction) => {
        await transaction
          .insertInto('budgets')
          .values({ name, definition })
          .onConflict((conflict) => conflict.column('name').doUpdateSet({ definition }))
          .execute();
        await database.audit.record(transaction, {
          action: 'budget.set',
          target: { kind: 'budget', name },
          detail: { note: definition },
        });
      });
    },

    remove: (name) =>
      database.transaction(async (transaction) => {
        const { numDeletedRows } = await transaction
          .deleteFrom('budgets')
          .where('name', '=', name)
          .executeTakeFirst();
        if (numDeletedRows === 0n) return false;
        await transaction.deleteFrom('budget_grants').where('budget', '=', name).execute();
        await database.audit.record(transaction, {
          action: 'budget.remove',
          target: { kind: 'budget', name },
        });
        return true;
      }),

    async sums(asked) {
      if (asked.length === 0) return [];
      const rows = jsonRows(
        asked.map(({ kind, subject, span, from }, index) => [index, kind, subject, span, from]),
        database,
      );
      const found = await sql<Amounts & { readonly place: number }>`
        select cast(value ->> 0 as bigint) as place,
          sum(wall_seconds) as "wallSeconds", sum(cpu_seconds) as "cpuSeconds",
          sum(gib_seconds) as "gibSeconds", sum(gpu_seconds) as "gpuSeconds", sum(cost) as "cost"
        from ${rows} join usage_totals on usage_totals.kind = value ->> 1
          and usage_totals.subject = value ->> 2 and usage_totals.span = value ->> 3
          and usage_totals.at >= cast(value ->> 4 as bigint)
        group by 1`.execute(kysely);
      const byPlace = new Map(found.rows.map(({ place, ...amounts }) => [Number(place), amounts]));
      return asked.map((_, index) => byPlace.get(index) ?? noUse);
    },

    async grant({ budget, userId, userName, amounts, reason, expiresAt }) {
      const written = JSON.stringify(amounts);
      await database.transaction(async (transaction) => {
        await transaction
          .deleteFrom('budget_grants')
          .where('expires_at', '<', database.now())
          .execute();
        await transaction
          .insertInto('budget_grants')
          .values({
            id: randomUUID(),
            budget,
            user_id: userId ?? null,
            amounts: written,
            expires_at: expiresAt,
          })
          .execute();
        await database.audit.record(transaction, {
          action: 'budget.grant',
          target: { kind: 'budget', name: budget },
          detail: {
            ...(userName !== undefined && { user: userName }),
            note: written,
            text: reason,
            until: new Date(expiresAt).toISOString(),
          },
        });
      });
    },

    async grants(nowMs) {
      const rows = await kysely
        .selectFrom('budget_grants')
        .where('expires_at', '>', nowMs)
        .select(['budget', 'user_id', 'amounts'])
        .execute();
      return rows.map(({ budget, user_id, amounts }) => ({
        budget,
        userId: user_id ?? undefined,
        amounts: JSON.parse(amounts) as BudgetLimits,
      }));
    },

    async memberCounts(groupIds) {
      if (groupIds.length === 0) return new Map();
      const rows = await kysely
        .selectFrom('group_members')
        .where('group_id', 'in', textsOf(groupIds, database))
        .select(['group_id', ({ fn }) => fn.countAll<number>().as('count')])
        .groupBy('group_id')
        .execute();
      return new Map(rows.map(({ group_id, count }) => [group_id, Number(count)]));
    },

    groupsOf: (userId) =>
      kysely
        .selectFrom('group_members')
        .innerJoin('groups', 'groups.id', 'group_members.group_id')
        .where('group_members.user_id', '=', userId)
        .select(['groups.id', 'groups.name'])
        .execute(),

    hours({ kind, subject, from }) {
      return kysely
        .selectFrom('usage_totals')
        .where('kind', '=', kind)
        .where('subject', '=', subject)
        .where('span', '=', 'hour')
        .where('at', '>=', from)
        .select([
          'at',
          'wall_seconds as wallSeconds',
          'cpu_seconds as cpuSeconds',
          'gib_seconds as gibSeconds',
          'gpu_seconds as gpuSeconds',
          'cost',
        ])
        .orderBy('at')
        .execute();
    },
  };
}
