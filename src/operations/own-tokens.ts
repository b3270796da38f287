import { z } from 'zod';
import type { Client } from '../identity/oauth/clients/client.ts';
import type { AccessToken } from '../identity/oauth/tokens/access-token.ts';
import type { AccessTokenStore } from '../identity/oauth/tokens/access-token-store.ts';
import { type Caller, mayGrant } from '../identity/rbac/access-check.ts';
import type { Authorizer } from '../identity/rbac/authorizer.ts';
import { adminScopes } from '../identity/rbac/role.ts';
import { scopeChoices } from '../identity/rbac/scope-choices.ts';
import { describeScopes } from '../identity/rbac/scope-descriptions.ts';
import { type PageEdge, readPageOf } from '../platform/store/page-edge.ts';
import type { Phrase } from '../platform/texts/text.ts';
import { operation } from './operation.ts';
import { ownUserOf } from './own-user.ts';
import { edgeOf, listQuery } from './users-query.ts';

export interface Deps {
  readonly accessTokens: Pick<AccessTokenStore, 'listOfUser' | 'revokeByClientAndUser'>;
  readonly authorizer: Pick<Authorizer, 'catalogue' | 'membershipFor'>;
  readonly findClient: (clientId: string) => Promise<Client | undefined>;
  readonly serviceNames: () => readonly string[];
  readonly titleOfService: (name: string) => Phrase | undefined;
  /** Milliseconds since 1970, by the clock of the database. */
  readonly now: () => number;
}

/** Tokens and applications on one page. */
const pageSize = 10;

const { after, before } = listQuery.shape;

/** The part of either list that is asked for. */
export const ownTokensQuery = z.object({ after, before, apps_after: after, apps_before: before });

/** Tokens made by hand, and applications that were allowed to act for the user. */
export async function ownTokensOf(
  caller: Caller,
  query: z.output<typeof ownTokensQuery>,
  deps: Deps,
) {
  const { authorizer, serviceNames, titleOfService } = deps;
  const { catalogue } = authorizer;
  const { id, name } = ownUserOf(caller);
  const reader = { userName: name, titleOfService };
  const describe = (scopes: readonly string[]) => describeScopes(scopes, catalogue, reader);
  const [all, membership] = await Promise.all([
    deps.accessTokens.listOfUser(id),
    authorizer.membershipFor(caller.scopes),
  ]);
  const own = all.filter(({ clientId, server }) => clientId === undefined && server === undefined);
  const [tokens, clients] = await Promise.all([
    pageOf(own, placeOfToken(deps.now()), edgeOf(query)),
    pageOf(
      clientsOf(all),
      placeOfClient,
      edgeOf({
        after: query.apps_after,
        before: query.apps_before,
      }),
    ),
  ]);
  return {
    tokens: {
      ...tokens,
      items: tokens.items.map((token) => ({ ...token, may: describe(token.scopes) })),
    },
    clients: {
      ...clients,
      items: await Promise.all(
        clients.items.map(async (each) => ({
          ...each,
          client: await deps.findClient(each.clientId),
          may: describe(each.scopes),
        })),
      ),
    },
    choices: scopeChoices(caller.scopes, { reader, catalogue, serviceNames: serviceNames() }),
    isAdministrator: mayGrant(caller.scopes, adminScopes(catalogue), membership),
  };
}

export const ownTokenOperations = [
  operation({
    id: 'revokeOwnClient',
    audience: 'page',
    method: 'POST',
    path: '/token/revoke-client',
    audit: ['token.revoke'],
    tag: 'tokens',
    summary: 'Revoke all tokens that an application has of the user',
    scopes: 'authenticated',
    body: z.object({ client_id: z.string() }),
    answers: { 204: { description: 'They are revoked.' } },
  }).handle(async ({ caller, body }, { accessTokens }: Deps) => {
    await accessTokens.revokeByClientAndUser(body.client_id, ownUserOf(caller).id);
  }),
];

/** What tokens of one application allow together, the one used last first. */
function clientsOf(tokens: readonly AccessToken[]) {
  const byClient = Map.groupBy(
    tokens.filter(({ clientId }) => clientId !== undefined),
    ({ clientId }) => clientId ?? '',
  );
  return [...byClient].map(([clientId, group]) => ({
    clientId,
    scopes: [...new Set(group.flatMap(({ scopes }) => scopes))].sort(),
    tokenCount: group.length,
    firstAllowedAt: new Date(Math.min(...group.map(({ createdAt }) => createdAt.getTime()))),
    lastUsedAt: latest(group.map(({ lastUsedAt }) => lastUsedAt)),
  }));
}

/** What a list is sorted by: a number, the larger the earlier, and an id. */
interface Place {
  readonly rank: number;
  readonly id: string;
}

/** More than any time. */
const maxMs = 10 ** 15;

/** Newest first, and those that have expired last. */
const placeOfToken =
  (now: number) =>
  ({ id, createdAt, expiresAt }: AccessToken): Place => {
    const isOver = expiresAt !== undefined && expiresAt.getTime() <= now;
    return { rank: isOver ? createdAt.getTime() - maxMs : createdAt.getTime(), id };
  };

function placeOfClient({ clientId, lastUsedAt }: ReturnType<typeof clientsOf>[number]): Place {
  return { rank: lastUsedAt?.getTime() ?? 0, id: clientId };
}

function comparePlaces(one: Place, other: Place): number {
  return other.rank - one.rank || (one.id < other.id ? -1 : Number(one.id > other.id));
}

function placeOf(key: string): Place | undefined {
  const [, rank, id = ''] = /^(-?\d{1,15}),(.*)$/su.exec(key) ?? [];
  return rank === undefined ? undefined : { rank: Number(rank), id };
}

/** A page of a list, whose items have the key that an edge names. */
async function pageOf<Item>(
  items: readonly Item[],
  placeIn: (item: Item) => Place,
  edge: PageEdge | undefined,
) {
  const placed = items.map((item) => ({ item, place: placeIn(item) }));
  const found = await readPageOf(
    placed.toSorted((one, other) => comparePlaces(one.place, other.place)),
    { limit: pageSize, edge },
    { placeOf, compare: (entry, place) => comparePlaces(entry.place, place) },
  );
  const keyed = found.items.map(({ item, place: { rank, id } }) => ({
    ...item,
    key: `${rank},${id}`,
  }));
  return { ...found, items: keyed };
}

function latest(dates: readonly (Date | undefined)[]): Date | undefined {
  const times = dates.filter((date) => date !== undefined).map((date) => date.getTime());
  return times.length === 0 ? undefined : new Date(Math.max(...times));
}
