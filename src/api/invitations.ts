import type Router from '@koa/router';
import type { Invitations } from '../accounts/invitations.ts';
import type { Authority } from '../rbac/authority.ts';
import { requireScopes } from './require-scopes.ts';

/** `/users/:name/invitation`: links to choose a password with. */
export function invitationRoutes(
  router: Router,
  parts: {
    readonly invitations: Invitations;
    readonly authority: Authority;
    readonly invitationUrl: (secret: string) => string;
  },
): void {
  const { invitations, authority } = parts;

  router.post('/users/:name/invitation', async (ctx) => {
    const name = ctx.params['name'] ?? '';
    const resource = { kind: 'user', name } as const;
    const caller = requireScopes(ctx, ['admin:users'], await authority.membership(), resource);
    const { user, purpose, secret, expiresAt } = await invitations.create(caller, name);
    ctx.status = 201;
    ctx.body = {
      user: user.name,
      purpose,
      url: parts.invitationUrl(secret),
      expires_at: expiresAt.toISOString(),
    };
  });

  router.delete('/users/:name/invitation', async (ctx) => {
    const name = ctx.params['name'] ?? '';
    const resource = { kind: 'user', name } as const;
    const caller = requireScopes(ctx, ['admin:users'], await authority.membership(), resource);
    await invitations.revoke(caller, name);
    ctx.status = 204;
  });
}
