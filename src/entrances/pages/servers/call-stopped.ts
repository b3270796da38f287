import type { Context } from 'koa';
import { headerToken, isFromAgent, toAnswer } from '../../../client/decision.ts';
import { denyUnidentified } from '../../../client/hub-auth.ts';
import { identifyActor } from '../../../platform/audit/actor.ts';
import { isWithin } from '../../../platform/concurrency/time-limit.ts';
import type { Origins } from '../../../platform/http/origins.ts';
import { noteCallerName } from '../../../platform/http/request-log.ts';
import type { ServerName } from '../../../platform/protocol/client-id.ts';
import { withMetadata } from '../../../traffic/gateway/protected-resources.ts';
import type { RouteAccess } from '../../../traffic/gateway/route-access.ts';
import type { UserServers } from '../../../workloads/servers/user-servers.ts';

/** `ready`: the server can be asked now. `answered`: the program has to get a token first. */
type Called = 'ready' | 'answered' | 'stopped';

/** Programs give up after a minute, as a rule. */
const patienceMs = 50_000;

/**
 * What a call by a program does to a server that is not running. One by an agent, or by another OAuth client, with a
 * token of the server's user starts it, as that user opening its page would, and waits until it is ready. An agent
 * without a token is told where to get one. Throws what a start is refused with.
 */
export function createCallStopped(deps: {
  readonly access: Pick<RouteAccess, 'identify' | 'isGranted'>;
  readonly servers: Pick<UserServers, 'start'>;
  readonly origins: Pick<Origins, 'of'>;
  readonly basePath: string;
}): (ctx: Context, server: ServerName) => Promise<Called> {
  const { access, servers, origins, basePath } = deps;

  return async (ctx, { userName, serverName }) => {
    const target = { kind: 'server', userName, serverName } as const;
    const isAgent = isFromAgent(ctx.req);
    const token = headerToken(ctx.req);
    const caller = token === undefined ? undefined : await access.identify(token);
    if (caller === undefined && isAgent) {
      const presented = token === undefined ? [] : [{ token, source: 'header' } as const];
      const denied = denyUnidentified(ctx.req, presented);
      const base = basePath.slice(0, -1);
      const url = ctx.originalUrl;
      const request = { url, headers: ctx.req.headers };
      const answer = toAnswer(withMetadata(denied, origins.of(target), base, request), false);
      ctx.status = answer.status;
      ctx.set({ ...answer.headers });
      ctx.body = answer.body;
      return 'answered';
    }
    const user = caller?.user;
    if (caller === undefined || user?.name !== userName) return 'stopped';
    if (!isAgent && caller.accessToken?.clientId === undefined) return 'stopped';
    if (!(await access.isGranted(caller, target))) return 'stopped';
    identifyActor(caller.owner);
    noteCallerName(ctx, userName);
    const { ready } = await servers.start({ user, serverName, mayStartInMaintenance: false });
    return (await isWithin(ready, patienceMs)) ? 'ready' : 'stopped';
  };
}
