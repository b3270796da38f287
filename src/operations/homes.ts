import { z } from 'zod';
import { type Caller, userNamesFor } from '../identity/rbac/access-check.ts';
import type { Authorizer } from '../identity/rbac/authorizer.ts';
import type { OffsetPageAsked } from '../platform/store/page-edge.ts';
import type { HomeSpaceStore } from '../workloads/servers/home-space-store.ts';
import { operation, view } from './operation.ts';
import { edgeOf, listQuery, pageLength } from './users-query.ts';

export interface Deps {
  readonly homeSpaceStore: Pick<HomeSpaceStore, 'list'>;
  readonly authorizer: Pick<Authorizer, 'membershipFor'>;
}

const homeModel = z
  .object({
    name: z.string().describe('Of the user.'),
    used_bytes: z.number().nullable().describe('Null where nobody could tell.'),
    total_bytes: z.number().nullable().describe('What fits in.'),
    measured_at: z.iso.datetime().nullable(),
  })
  .meta({ id: 'Home', description: 'How full the home of a user was while a server ran last.' });

/** How full homes are. */
export const homeOperations = [
  operation({
    id: 'listHomes',
    method: 'GET',
    path: '/homes',
    tag: 'servers',
    summary: 'List how full the homes of users are',
    description: 'Of those who have a server; where most is used comes first.',
    scopes: ['read:servers'],
    target: 'users',
    isPaged: true,
    answers: { 200: { description: 'How full they are.', schema: z.array(homeModel) } },
  }).handle(async ({ caller, page }, deps: Deps) => {
    const { items, total } = await listFor(caller, page, deps);
    return {
      status: 200,
      items: items.map(({ userName, space }) => ({
        name: userName,
        used_bytes: space?.usedBytes ?? null,
        total_bytes: space?.totalBytes ?? null,
        measured_at: space?.measuredAt.toISOString() ?? null,
      })),
      total,
    };
  }),
  view({
    id: 'viewHomes',
    path: '/admin/homes',
    scopes: ['list:users'],
    target: 'users',
    query: listQuery.pick({ after: true, before: true }),
  }).handle(({ query, caller }, deps: Deps) =>
    listFor(caller, { limit: pageLength, edge: edgeOf(query) }, deps),
  ),
];

async function listFor({ scopes }: Caller, page: OffsetPageAsked, deps: Deps) {
  const membership = await deps.authorizer.membershipFor(scopes);
  return deps.homeSpaceStore.list(userNamesFor(scopes, 'read:servers', membership), page);
}
