import type Router from '@koa/router';
import { HubError } from '../errors.ts';
import type { Authority } from '../rbac/authority.ts';
import type { LoginSessions } from '../sessions/login-sessions.ts';
import type { UserStore } from '../users/user-store.ts';
import { requireScopes } from './require-scopes.ts';

/** `/users/:name/sessions`: where a user is logged in. */
export function sessionRoutes(
  router: Router,
  parts: {
    readonly users: UserStore;
    readonly logins: LoginSessions;
    readonly authority: Authority;
  },
): void {
  const { users, logins, authority } = parts;

  router.get('/users/:name/sessions', async (ctx) => {
    const name = ctx.params['name'] ?? '';
    const caller = requireScopes(ctx, ['read:tokens'], await authority.membership(), {
      kind: 'user',
      name,
    });
    const sessions = await logins.listOfUser((await users.getByName(name)).id);
    ctx.body = {
      sessions: sessions.map((session) => ({
        id: session.sessionId,
        authenticator: session.authenticator,
        created: session.createdAt.toISOString(),
        last_seen: session.lastSeenAt.toISOString(),
        expires_at: session.expiresAt.toISOString(),
        address: session.address,
        user_agent: session.userAgent,
        current: session.sessionId === caller.sessionId,
      })),
    };
  });

  router.delete('/users/:name/sessions', async (ctx) => {
    const name = ctx.params['name'] ?? '';
    requireScopes(ctx, ['tokens'], await authority.membership(), { kind: 'user', name });
    await logins.endAllOfUser((await users.getByName(name)).id);
    ctx.status = 204;
  });

  router.delete('/users/:name/sessions/:id', async (ctx) => {
    const name = ctx.params['name'] ?? '';
    requireScopes(ctx, ['tokens'], await authority.membership(), { kind: 'user', name });
    const sessions = await logins.listOfUser((await users.getByName(name)).id);
    const session = sessions.find(({ sessionId }) => sessionId === ctx.params['id']);
    if (session === undefined) throw new HubError('not_found', 'This user has no such session.');
    await logins.end(session.sessionId);
    ctx.status = 204;
  });
}
