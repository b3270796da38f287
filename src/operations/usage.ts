import { z } from 'zod';
import { type Caller, listFilter, userNamesFor } from '../identity/rbac/access-check.ts';
import type { Authorizer } from '../identity/rbac/authorizer.ts';
import type { User, UserStore } from '../identity/users/user-store.ts';
import { HubError } from '../platform/errors.ts';
import type { HubDatabase } from '../platform/store/database.ts';
import { text } from '../platform/texts/text.ts';
import type { ServerStore } from '../workloads/servers/server-store.ts';
import type { Budgets } from '../workloads/usage/budgets.ts';
import { type Amounts, addAmounts, noUse } from '../workloads/usage/count-use.ts';
import {
  type NamedUse,
  type UsageStore,
  type UseKind,
  type UseOfDay,
  useKinds,
  useSorts,
} from '../workloads/usage/usage-store.ts';
import { operation, view } from './operation.ts';
import { ownUserOf } from './own-user.ts';

export interface Deps {
  readonly usage: UsageStore;
  readonly database: Pick<HubDatabase, 'now'>;
  readonly users: Pick<UserStore, 'getByName'>;
  readonly authorizer: Pick<Authorizer, 'membershipFor'>;
  /** `Spawner.prices.currency`. */
  readonly currency: string;
}

export interface OwnDeps extends Pick<Deps, 'usage' | 'database' | 'currency'> {
  readonly serverStore: Pick<ServerStore, 'listOfUser'>;
  readonly budgets: Pick<Budgets, 'ofUser'>;
}

/** Rows on a page; a file has more. */
const shownRows = 100;
const maxExported = 10_000;

const monthPattern = /^20\d{2}-(?:0[1-9]|1[0-2])$/;
const month = z.string().regex(monthPattern, 'must be a month such as 2026-01');
const optionalMonth = month.optional();
const by = z.enum(useKinds);

const amountsModel = z.object({
  server_hours: z.number().describe('Of time in which servers ran.'),
  cpu_hours: z.number().describe('Of cores in use.'),
  gib_hours: z.number().describe('Of GiB of memory in use.'),
  gpu_hours: z.number().describe('Of GPUs that servers had, in use or not.'),
  cost: z.number().describe('By the prices of their time (`Spawner.prices`).'),
});
const currency = z.string().describe('`Spawner.prices.currency`.');
const namedUseModel = amountsModel.extend({ name: z.string() }).meta({
  id: 'NamedUse',
  description: 'What a user, the members of a group, or servers of a profile used.',
});

const ofMonth = z.object({
  by: by.default('user'),
  month: optionalMonth.describe('Such as `2026-01`, by UTC; this one unless given.'),
  sort: z.enum(useSorts).default('server_hours').describe('The most first.'),
});
const viewQuery = z.object({
  by: by.default('user').catch('user'),
  month: optionalMonth.catch(undefined).optional(),
  sort: z.enum(useSorts).default('server_hours').catch('server_hours'),
  name: z.string().max(255).optional().catch(undefined).optional(),
});

/** What servers used. */
export const usageOperations = [
  operation({
    id: 'listUsage',
    method: 'GET',
    path: '/usage',
    tag: 'servers',
    summary: 'List what was used in a month',
    description:
      'By group and by profile where the caller may read every server, by group also those of groups that they may.',
    scopes: ['read:servers'],
    target: 'users',
    query: ofMonth,
    isPaged: true,
    answers: { 200: { description: 'Who used how much.', schema: z.array(namedUseModel) } },
  }).handle(async ({ query, caller, page }, deps: Deps) => {
    const { items, total } = await listOf(query, caller, page, deps);
    return { status: 200, items: items.map(presentNamed), total };
  }),
  operation({
    id: 'getUsageOfUser',
    byCommand: true,
    method: 'GET',
    path: '/users/{name}/usage',
    tag: 'servers',
    summary: 'Read what the servers of a user used in a month',
    scopes: ['read:servers'],
    target: 'user',
    query: ofMonth.pick({ month: true }),
    answers: {
      200: {
        description: 'By day, and all together.',
        schema: z
          .object({
            month,
            currency,
            total: amountsModel,
            days: z.array(amountsModel.extend({ day: z.iso.date() })),
          })
          .meta({ id: 'UsageOfUser', description: 'What the servers of a user used in a month.' }),
      },
    },
  }).handle(async ({ params, query }, deps: Deps) => {
    const { name } = await deps.users.getByName(params.name);
    const time = monthOf(query.month, deps);
    const days = await deps.usage.byDay({ kind: 'user', name }, time);
    return {
      status: 200,
      body: {
        month: time.month,
        currency: deps.currency,
        total: present(sumOf(days)),
        days: days.map((each) => ({
          day: new Date(each.at).toISOString().slice(0, 10),
          ...present(each),
        })),
      },
    };
  }),
  view({
    id: 'viewOwnUsage',
    path: '/usage',
    scopes: 'authenticated',
    query: viewQuery.pick({ month: true }),
  }).handle(async ({ query, caller }, deps: OwnDeps) => {
    const user = ownUserOf(caller);
    const time = monthOf(query.month, deps);
    const [days, budgets] = await Promise.all([
      deps.usage.byDay({ kind: 'user', name: user.name }, time),
      budgetsOf(user, deps),
    ]);
    return { time, days, sum: sumOf(days), budgets, currency: deps.currency };
  }),
  view({
    id: 'viewUsage',
    path: '/admin/usage',
    scopes: ['list:users'],
    target: 'users',
    query: viewQuery,
  }).handle(async ({ query, caller }, deps: Deps) => {
    const time = monthOf(query.month, deps);
    const [found, days] = await Promise.all([
      listOf(query, caller, { offset: 0, limit: shownRows }, deps),
      daysOf(query, caller, time, deps),
    ]);
    return { query, time, found, days, sumOfDays: sumOf(days ?? []), currency: deps.currency };
  }),
  operation({
    id: 'exportUsage',
    audience: 'page',
    byCommand: true,
    method: 'POST',
    path: '/admin/usage.csv',
    audit: { none: 'It reads.' },
    tag: 'servers',
    summary: 'Read what was used in a month, for a file',
    scopes: ['list:users'],
    target: 'users',
    body: viewQuery,
    answers: {
      200: {
        description: 'Who used how much.',
        schema: z.object({ by, month, currency, items: z.array(namedUseModel) }),
      },
    },
  }).handle(async ({ body, caller }, deps: Deps) => {
    const { items } = await listOf(body, caller, { offset: 0, limit: maxExported }, deps);
    return {
      status: 200,
      body: {
        by: body.by,
        month: monthOf(body.month, deps).month,
        currency: deps.currency,
        items: items.map(presentNamed),
      },
    };
  }),
];

/** The budgets of a user, and of the profiles of their servers. */
export async function budgetsOf(
  user: Pick<User, 'id' | 'name'>,
  { serverStore, budgets }: Pick<OwnDeps, 'serverStore' | 'budgets'>,
) {
  const servers = await serverStore.listOfUser(user.name);
  const profiles = servers.flatMap(({ userOptions: { profile } }) =>
    typeof profile === 'string' ? [profile] : [],
  );
  return budgets.ofUser(user, [...new Set(profiles)]);
}

type Month = ReturnType<typeof monthOf>;

/** A month, and when it begins and ends (UTC). */
function monthOf(asked: string | undefined, { database }: Pick<Deps, 'database'>) {
  const written = asked ?? new Date(database.now()).toISOString().slice(0, 7);
  const [year = 0, number = 0] = written.split('-').map(Number);
  return { month: written, from: Date.UTC(year, number - 1), to: Date.UTC(year, number) };
}

/** Whose use of a kind a caller may read. */
async function namesFor(
  kind: UseKind,
  { scopes }: Caller,
  { authorizer }: Pick<Deps, 'authorizer'>,
): Promise<'all' | readonly string[]> {
  if (kind === 'user') {
    return userNamesFor(scopes, 'read:servers', await authorizer.membershipFor(scopes));
  }
  const filter = listFilter(scopes, 'read:servers');
  if (filter === 'all') return 'all';
  return kind === 'group' && filter !== undefined ? [...filter.groups] : [];
}

async function listOf(
  query: z.output<typeof ofMonth>,
  caller: Caller,
  page: { readonly offset: number; readonly limit: number },
  deps: Deps,
) {
  return deps.usage.ofMonth({
    kind: query.by,
    month: monthOf(query.month, deps).from,
    onlyNames: await namesFor(query.by, caller, deps),
    sort: query.sort,
    ...page,
  });
}

/** Of what is named, else of everything; undefined where the caller may not read all of it. */
async function daysOf(
  { by: kind, name }: z.output<typeof viewQuery>,
  caller: Caller,
  time: Month,
  deps: Deps,
): Promise<readonly UseOfDay[] | undefined> {
  const names = await namesFor(kind, caller, deps);
  if (name === undefined)
    return names === 'all' ? deps.usage.byDay({ kind: 'all' }, time) : undefined;
  if (names !== 'all' && !names.includes(name)) {
    throw new HubError('not_found', text`Nothing is known of this name.`);
  }
  return deps.usage.byDay({ kind, name }, time);
}

const hours = (seconds: number) => Math.round(seconds / 3.6) / 1000;

function present({ wallSeconds, cpuSeconds, gibSeconds, gpuSeconds, cost }: Amounts) {
  return {
    server_hours: hours(wallSeconds),
    cpu_hours: hours(cpuSeconds),
    gib_hours: hours(gibSeconds),
    gpu_hours: hours(gpuSeconds),
    cost: Math.round(cost * 1e4) / 1e4,
  };
}

const presentNamed = ({ name, ...amounts }: NamedUse) => ({ name, ...present(amounts) });

function sumOf(days: readonly Amounts[]): Amounts {
  return days.reduce(addAmounts, noUse);
}
