import { pino } from 'pino';
import { expect, test } from 'vitest';
import { describeEachDatabase } from '../../../test/support/databases.ts';
import { createGroupStore } from '../../identity/users/group-store.ts';
import { createUserStore } from '../../identity/users/user-store.ts';
import { createAuditStore } from '../../platform/store/audit-store.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import type { Budget } from './budget.ts';
import { createBudgetStore } from './budget-store.ts';
import { createBudgets } from './budgets.ts';
import { hourMs } from './count-use.ts';
import { createStopOverBudget } from './stop-over-budget.ts';

const ada = { id: 'ada-id', name: 'ada' };
/** A Wednesday. */
const now = Date.UTC(2026, 6, 15, 12, 30);

async function use(
  { kysely }: HubDatabase,
  kind: string,
  subject: string,
  hours: readonly (readonly [span: string, at: number, cpuHours: number])[],
) {
  for (const [span, at, cpuHours] of hours) {
    const amounts = { wall_seconds: 0, gib_seconds: 0, gpu_seconds: 0, cost: 0 };
    const row = { kind, subject, span, at, label: '', cpu_seconds: cpuHours * 3600, ...amounts };
    await kysely.insertInto('usage_totals').values(row).execute();
  }
}

/** Makes a group of users. */
async function join(database: HubDatabase, ...names: readonly string[]) {
  const users = createUserStore(database);
  const [ada] = await Promise.all(names.map((name) => users.create({ name })));
  const [group] = await createGroupStore(database).createAll({
    names: ['course'],
    memberNames: names,
    origin: 'api',
  });
  return { ada: ada!, groupId: group!.id };
}

const budgetsOf = (database: HubDatabase, ...budgets: readonly Partial<Budget>[]) =>
  createBudgets({
    database: { now: () => now },
    budgetStore: createBudgetStore({ ...database, now: () => now }),
    config: {
      Spawner: {
        budgets: budgets.map((each) => ({ sharing: 'together', when_over: 'stop', ...each })),
        prices: { currency: '€' },
      },
    } as never,
  });

describeEachDatabase('budgets', (open) => {
  test('refuse a start with the sum and the moment from which there is room', async () => {
    const database = await open();
    const monday = Date.UTC(2026, 6, 13);
    await use(database, 'user', ada.id, [
      ['day', monday - 86_400_000, 50],
      ['day', monday, 9],
      ['day', monday + 86_400_000, 1.25],
      ['month', Date.UTC(2026, 6), 60],
      ['hour', now - 20.5 * hourMs, 4],
      ['hour', now - 3.5 * hourMs, 4],
      ['hour', now - 2.5 * hourMs, 1],
    ]);
    const refusal = async (...budgets: readonly Partial<Budget>[]) =>
      budgetsOf(database, ...budgets)
        .requireBudget(ada, 'big')
        .then(
          () => undefined,
          ({ message, hint }: { message: string; hint: unknown }) => `${message} ${hint}`,
        );
    const week = { name: 'weekly', user: '*', period: 'week', cpu_hours: 10 } as const;
    expect(await refusal(week)).toBe(
      'The budget “weekly” is used up: 10.3 of 10 CPU hours. There is room again from 2026-07-20 00:00 UTC on; an administrator can grant more before.',
    );
    expect(await refusal({ ...week, cpu_hours: 11 })).toBeUndefined();
    expect(await refusal({ ...week, user: 'bob' })).toBeUndefined();
    expect(await refusal({ ...week, user: 'ada', period: 'day' })).toBeUndefined();
    expect(
      await refusal({ name: 'gone', group: 'gone', period: 'week', cpu_hours: 1 }),
    ).toBeUndefined();
    // Of several, each must have room.
    const month = { name: 'monthly', user: 'ada', period: 'month', cpu_hours: 60 } as const;
    expect(await refusal(week, month)).toContain('room again from 2026-08-01 00:00 UTC');
    // What was granted counts until the end of the period.
    const given = budgetsOf(database, week);
    const grant = { budget: 'weekly', reason: 'More work.' } as const;
    await given.grant({ ...grant, user: { id: 'bob-id', name: 'bob' }, amounts: { cpu_hours: 5 } });
    expect(await refusal(week)).toBeDefined();
    const { expiresAt } = await given.grant({ ...grant, user: ada, amounts: { cpu_hours: 1 } });
    expect(expiresAt).toBe(monday + 7 * 86_400_000);
    expect(await refusal(week)).toBeUndefined();
    await expect(given.grant({ ...grant, user: ada, amounts: { cost: 1 } })).rejects.toThrow(
      'Grant some of what the budget limits.',
    );
    const audited = await createAuditStore(database).list({
      filter: { action: 'budget.grant' },
      limit: 9,
    });
    expect(audited.entries.map(({ detail }) => detail)).toMatchObject([
      { user: 'ada', text: 'More work.' },
      { user: 'bob' },
    ]);
    // As the oldest hours fall out of the time.
    const rolling = { name: 'rolling', user: '*', period: '24h', cpu_hours: 5 } as const;
    expect(await refusal(rolling)).toContain(
      '9 of 5 CPU hours. There is room again from 2026-07-16 10:00 UTC',
    );
    expect(await refusal({ ...rolling, period: '2h' })).toBeUndefined();
  });

  test('are used by a group together, or divided among its members', async () => {
    const database = await open();
    const { ada: user, groupId } = await join(database, 'ada', 'bob');
    const month = Date.UTC(2026, 6);
    await use(database, 'group', groupId, [['month', month, 90]]);
    await use(database, 'user', user.id, [['month', month, 30]]);
    await use(database, 'profile', 'big', [['month', month, 8]]);
    const course = { name: 'course', group: 'course', period: 'month', cpu_hours: 100 } as const;
    const states = await budgetsOf(
      database,
      course,
      { ...course, name: 'each', sharing: 'divided' },
      { name: 'gpu', profile: 'big', period: 'month', cpu_hours: 10 },
    ).ofUser(user, ['big']);
    expect(states.map(({ budget, used, limit, part }) => [budget.name, used, limit, part])).toEqual(
      [
        ['course', 90, 100, 0.9],
        ['gpu', 8, 10, 0.8],
        ['each', 30, 50, 0.6],
      ],
    );
  });

  test('are set, changed and removed at run time, where the configuration has none of that name', async () => {
    const database = await open();
    await use(database, 'user', ada.id, [['month', Date.UTC(2026, 6), 10]]);
    const month = { user: '*', period: 'month', sharing: 'together', when_over: 'stop' } as const;
    const budgets = budgetsOf(database, { name: 'fixed', user: 'bob', period: 'day', cost: 1 });
    const isRefused = () =>
      budgets.requireBudget(ada, undefined).then(
        () => false,
        () => true,
      );
    await budgets.set('extra', { ...month, cpu_hours: 10 });
    expect(await isRefused()).toBe(true);
    await budgets.set('extra', { ...month, cpu_hours: 12 });
    expect(await isRefused()).toBe(false);
    await budgets.set('other', { ...month, user: 'ada', cpu_hours: 5 });
    expect(await isRefused()).toBe(true);
    await budgets.grant({ budget: 'other', user: ada, amounts: { cpu_hours: 6 }, reason: 'More.' });
    expect(await isRefused()).toBe(false);
    // What was granted goes with its budget.
    await budgets.remove('other');
    await budgets.set('other', { ...month, user: 'ada', cpu_hours: 5 });
    expect(await isRefused()).toBe(true);
    for (const refused of [
      budgets.set('fixed', { ...month, cpu_hours: 1 }),
      budgets.remove('fixed'),
    ]) {
      await expect(refused).rejects.toThrow('The budget “fixed” is set by the configuration.');
    }
    await expect(budgets.set('a b', { ...month, cpu_hours: 1 })).rejects.toThrow('is called by');
    await expect(budgets.remove('gone')).rejects.toThrow('There is no such budget.');
    // One of the configuration of the same name is the one that counts.
    const later = budgetsOf(database, { name: 'other', user: 'bob', period: 'day', cost: 1 });
    expect(
      (await later.list()).map(({ name, user, isConfigured }) => [name, user, isConfigured]),
    ).toEqual([
      ['other', 'bob', true],
      ['extra', '*', false],
    ]);
    await later.requireBudget(ada, undefined);
  });

  test('stop what runs once they are used up, unless it is to be kept', async () => {
    const database = await open();
    await use(database, 'profile', 'big', [['month', Date.UTC(2026, 6), 10]]);
    await use(database, 'user', 'eve-id', [['month', Date.UTC(2026, 6), 10]]);
    const month = { period: 'month', cpu_hours: 10 } as const;
    const stopped: string[] = [];
    const done = Promise.withResolvers<void>();
    const stopOverBudget = createStopOverBudget({
      budgets: budgetsOf(
        database,
        { ...month, name: 'stopped', profile: 'big' },
        { ...month, name: 'kept', user: 'eve', when_over: 'keep' },
      ),
      limitsStore: { end: async (_instance, ended) => ended.map(({ id }) => id) },
      instance: { id: 'one' },
      servers: {
        async stopAtLimit(id, reason) {
          stopped.push(`${id} ${reason}`);
          done.resolve();
        },
      },
      log: pino({ level: 'silent' }),
    });
    const subject = { serverName: '', userId: ada.id, userName: 'ada', groups: [], engine: '' };
    await stopOverBudget([
      { serverId: 'one', subject: { ...subject, profile: 'big' } },
      { serverId: 'two', subject: { ...subject, profile: 'small' } },
      {
        serverId: 'three',
        subject: { ...subject, userId: 'eve-id', userName: 'eve', profile: '' },
      },
    ]);
    await done.promise;
    expect(stopped).toEqual(['one budget']);
  });
});
