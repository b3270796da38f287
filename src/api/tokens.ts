import type Router from '@koa/router';
import type { Context } from 'koa';
import { z } from 'zod';
import { HubError } from '../errors.ts';
import type { AccessToken } from '../oauth/tokens/access-token.ts';
import type { AccessTokenStore } from '../oauth/tokens/access-token-store.ts';
import type { TokenIssuer } from '../oauth/tokens/token-issuer.ts';
import type { Authority } from '../rbac/authority.ts';
import type { RoleStore } from '../rbac/role-store.ts';
import { presentScopes } from '../rbac/scope.ts';
import type { UserStore } from '../users/user-store.ts';
import { parseBody } from './parse-body.ts';
import { requireScopes } from './require-scopes.ts';

const creation = z
  .strictObject({
    note: z.string().max(500).default('Requested via the API'),
    expires_in: z.number().positive().nullish(),
    scopes: z.array(z.string()).optional(),
    roles: z.array(z.string()).optional(),
  })
  .refine(({ scopes, roles }) => scopes === undefined || roles === undefined, {
    message: 'Give scopes or roles, not both.',
  });

/** `/users/:name/tokens`. */
export function tokenRoutes(
  router: Router,
  parts: {
    readonly users: UserStore;
    readonly accessTokens: AccessTokenStore;
    readonly tokenIssuer: TokenIssuer;
    readonly roles: Pick<RoleStore, 'getByName'>;
    readonly authority: Authority;
    readonly bodyLimitBytes: number;
  },
): void {
  const { users, accessTokens, tokenIssuer, roles, authority, bodyLimitBytes } = parts;

  async function present(token: AccessToken): Promise<Record<string, unknown>> {
    const scopes = await authority.effectiveScopes({ owner: token.owner, scopes: token.scopes });
    return {
      kind: 'api_token',
      id: token.id,
      [token.owner.kind]: token.owner.name,
      roles: [],
      scopes: presentScopes(scopes),
      note: token.note,
      created: token.createdAt.toISOString(),
      last_activity: token.lastUsedAt?.toISOString() ?? null,
      expires_at: token.expiresAt?.toISOString() ?? null,
      session_id: token.sessionId ?? null,
      oauth_client: token.clientId ?? 'hub',
    };
  }

  async function tokenOf(ctx: Context, scope: string): Promise<AccessToken> {
    const name = String(ctx['params']['name']);
    requireScopes(ctx, [scope], await authority.membership(), { kind: 'user', name });
    const user = await users.getByName(name);
    const token = await accessTokens.findById(String(ctx['params']['id']));
    if (token?.userId === user.id) return token;
    throw new HubError('not_found', 'This user has no such token.');
  }

  router.get('/users/:name/tokens', async (ctx) => {
    const name = ctx.params['name'] ?? '';
    requireScopes(ctx, ['read:tokens'], await authority.membership(), { kind: 'user', name });
    const user = await users.getByName(name);
    const tokens = await accessTokens.listOfUser(user.id);
    ctx.body = { api_tokens: await Promise.all(tokens.map(present)) };
  });

  router.post('/users/:name/tokens', async (ctx) => {
    const name = ctx.params['name'] ?? '';
    const caller = requireScopes(ctx, ['tokens'], await authority.membership(), {
      kind: 'user',
      name,
    });
    const user = await users.getByName(name);
    const body = await parseBody(ctx, creation, bodyLimitBytes);
    const named = await Promise.all((body.roles ?? []).map((role) => roles.getByName(role)));
    const scopes =
      body.scopes ?? (named.length > 0 ? named.flatMap((role) => role.scopes) : ['inherit']);
    const issued = await tokenIssuer.createApiToken({
      granter: caller,
      owner: { kind: 'user', user },
      scopes,
      note: body.note,
      ...(body.expires_in == null ? {} : { expiresInSeconds: body.expires_in }),
    });
    const token = await accessTokens.findById(issued.id);
    if (token === undefined)
      throw new HubError('internal', 'The token vanished while it was made.');
    ctx.status = 201;
    ctx.body = { ...(await present(token)), token: issued.token };
  });

  router.get('/users/:name/tokens/:id', async (ctx) => {
    ctx.body = await present(await tokenOf(ctx, 'read:tokens'));
  });

  router.delete('/users/:name/tokens/:id', async (ctx) => {
    const token = await tokenOf(ctx, 'tokens');
    // One application holds several tokens of a user: withdrawing its access means all of them.
    if (token.clientId === undefined || token.userId === undefined)
      await accessTokens.revoke(token.id);
    else await accessTokens.revokeByClientAndUser(token.clientId, token.userId);
    ctx.status = 204;
  });
}
