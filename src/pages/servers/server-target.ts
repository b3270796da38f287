import type { Context } from 'koa';
import type { ActingOnUsers } from '../../accounts/acting-on-users.ts';
import { HubError } from '../../errors.ts';
import { mayAccess } from '../../rbac/access-check.ts';
import type { Authorizer } from '../../rbac/authorizer.ts';
import type { Login } from '../../sessions/login-sessions.ts';
import { type Phrase, text } from '../../texts/text.ts';
import type { User, UserStore } from '../../users/user-store.ts';
import type { PageContext } from '../page-context.ts';
import { serverTitle } from './server-summary.ts';

/** The server that a page or form is about. */
export interface ServerTarget {
  readonly user: User;
  /** Empty for the default server. */
  readonly serverName: string;
  /** Whether the visitor holds a scope for it. */
  readonly may: (scope: string) => boolean;
}

/**
 * Whose server the address names, once it is clear that the visitor holds all of these scopes for it and may do so
 * much to its user. Throws `not_found`.
 */
export type FindServerTarget = (
  ctx: Context,
  login: Login,
  ...scopes: readonly [string, ...string[]]
) => Promise<ServerTarget>;

export function createFindServerTarget(deps: {
  readonly pages: Pick<PageContext, 'callerOf'>;
  readonly authorizer: Pick<Authorizer, 'membershipFor'>;
  readonly users: Pick<UserStore, 'findByName'>;
  readonly acting: Pick<ActingOnUsers, 'requireMayActOn'>;
}): FindServerTarget {
  return async (ctx, login, ...wanted) => {
    const userName = String(ctx['params']['user'] ?? login.user.name);
    const serverName = String(ctx['params']['server'] ?? '');
    const caller = await deps.pages.callerOf(login);
    const membership = await deps.authorizer.membershipFor(caller.scopes);
    const resource = { kind: 'server', userName, serverName } as const;
    const may = (scope: string) => mayAccess(caller.scopes, scope, resource, membership);
    const user = await deps.users.findByName(userName);
    if (!wanted.every(may) || user === undefined) {
      throw new HubError('not_found', text`There is no such server, or it is not yours to use.`);
    }
    const deeds = wanted.filter((scope) => scope !== 'read:servers');
    if (deeds.length > 0) await deps.acting.requireMayActOn(caller, user, deeds, serverName);
    return { user, serverName, may };
  };
}

/** What a notice calls a server. */
export function targetName(
  login: Login,
  { user, serverName }: Pick<ServerTarget, 'user' | 'serverName'>,
): Phrase {
  if (serverName === '') return serverTitle({ userName: user.name, name: '' }, login.user.name);
  return user.id === login.user.id
    ? text`The server ${serverName}`
    : text`The server ${serverName} of ${user.name}`;
}
