import { z } from 'zod';
import type { ScopeCatalogue } from '../identity/rbac/scope-definitions.ts';
import type { UserInfoStore } from '../identity/users/user-info-store.ts';
import type { UserStore } from '../identity/users/user-store.ts';
import { currentActor } from '../platform/audit/actor.ts';
import { HubError } from '../platform/errors.ts';
import { text } from '../platform/texts/text.ts';
import type { LiveConnections } from '../traffic/proxy/live-connections.ts';
import { type Server, unreachableSince } from '../workloads/servers/server.ts';
import type { UserServers } from '../workloads/servers/user-servers.ts';
import type { Sharing } from '../workloads/sharing/sharing.ts';
import { operation, view } from './operation.ts';
import { listOptionsOf, listQuery } from './users-query.ts';

export interface Deps {
  readonly users: Pick<UserStore, 'getByName'>;
  readonly sharing: Sharing;
  readonly servers: Pick<UserServers, 'prefixOf'>;
  readonly userInfo: Pick<UserInfoStore, 'displayNames'>;
  readonly catalogue: ScopeCatalogue;
  /** Those of this process. */
  readonly liveConnections: Pick<LiveConnections, 'list'>;
}

const maxLinks = 100;
const maxConnected = 20;

/** Sharing, as pages show it and links do it. */
export const sharePageOperations = [
  view({
    id: 'viewShares',
    path: '/share/{name}/{server}',
    scopes: ['read:shares'],
    target: 'server',
    query: listQuery,
  }).handle(async ({ params, query, may }, deps: Deps) => {
    const { name, server } = params;
    const { sharing, userInfo, catalogue } = deps;
    const [found, links] = await Promise.all([
      sharing.sharesOfServer(name, server, listOptionsOf(query)),
      sharing.codesOfServer(name, server, { offset: 0, limit: maxLinks }),
    ]);
    const known = found.items.flatMap(({ recipient }) =>
      recipient.kind === 'user' && may('read:users:info', { kind: 'user', name: recipient.name })
        ? [recipient.name]
        : [],
    );
    const resource = { kind: 'server', userName: name, serverName: server } as const;
    return {
      query,
      found,
      links: links.items,
      connected: connectedTo({ userName: name, name: server }, deps),
      displayNames: await userInfo.displayNames(known),
      /** Scopes that the caller holds for the server. */
      held: new Set(catalogue.names.filter((scope) => may(scope, resource))),
    };
  }),
  view({
    id: 'viewShareCode',
    path: '/accept-share',
    scopes: 'authenticated',
    query: z.object({ code: z.string().optional() }),
  }).handle(async ({ query, caller }, { sharing, users }: Deps) => {
    const code = requireCode(query.code);
    const found = await sharing.findCode(
      code,
      await users.getByName(caller.owner.name),
      clientAddress(),
    );
    const { server, scopeNames } = found;
    return {
      code,
      server,
      scopeNames,
      isRunning: server.state === 'running' && unreachableSince(server) === undefined,
    };
  }),
  operation({
    id: 'acceptShareCode',
    audience: 'page',
    method: 'POST',
    path: '/accept-share',
    audit: ['share_code.accept'],
    tag: 'shares',
    summary: 'Take what a code shares',
    scopes: 'authenticated',
    body: z.object({ code: z.string().optional() }),
    answers: {
      200: {
        description: 'The server, and its path.',
        schema: z.object({ id: z.string(), prefix: z.string() }),
      },
    },
  }).handle(async ({ body, caller }, { sharing, servers, users }: Deps) => {
    const code = requireCode(body.code);
    try {
      const { server } = await sharing.acceptCode(
        code,
        await users.getByName(caller.owner.name),
        clientAddress(),
      );
      return { status: 200, body: { id: server.id, prefix: servers.prefixOf(server) } };
    } catch (error) {
      throw asBadRequest(error);
    }
  }),
];

/** Other users whose connections to a server run through this process. */
function connectedTo(
  server: Pick<Server, 'userName' | 'name'>,
  { servers, liveConnections }: Pick<Deps, 'servers' | 'liveConnections'>,
): string[] {
  const prefix = servers.prefixOf(server);
  const names = new Set<string>();
  for (const { tags } of liveConnections.list()) {
    if (tags.route.prefix !== prefix || tags.userName === undefined) continue;
    if (tags.userName !== server.userName) names.add(tags.userName);
    if (names.size === maxConnected) break;
  }
  return [...names].sort();
}

/** Guesses are counted by it. */
function clientAddress(): string {
  return currentActor()?.address ?? '';
}

function requireCode(code: string | undefined): string {
  if (code !== undefined && code !== '') return code;
  throw new HubError('bad_request', text`The address has no code in it.`, {
    hint: text`Open the whole link as you got it.`,
  });
}

/** A form is not an address: what it names need not be found. */
function asBadRequest(error: unknown): unknown {
  if (!(error instanceof HubError)) return error;
  if (error.code !== 'not_found' && error.code !== 'forbidden') return error;
  return new HubError('bad_request', error.shown.message, {
    cause: error,
    ...(error.shown.hint !== undefined && { hint: error.shown.hint }),
  });
}
