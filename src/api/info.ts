import type Router from '@koa/router';
import type { Authority } from '../rbac/authority.ts';
import { presentScopes } from '../rbac/scope.ts';
import { callerOf } from './caller-middleware.ts';
import { requireScopes } from './require-scopes.ts';
import type { UserDirectory } from './user-directory.ts';
import { presentUser } from './user-model.ts';

/** What the hub tells about itself. */
export interface HubInfo {
  readonly version: string;
  /** The version the API gives as its own: with JupyterHub software, one in its count. */
  readonly apiVersion: string;
  readonly nodeVersion: string;
  readonly spawner: string;
  readonly authenticators: readonly { readonly name: string; readonly class: string }[];
}

/** `GET /`, `GET /info` and `GET /user`. */
export function infoRoutes(
  router: Router,
  parts: {
    readonly info: HubInfo;
    readonly authority: Authority;
    readonly directory: UserDirectory;
    readonly roleNamesOfService: (name: string) => Promise<readonly string[]>;
    readonly isAdminService: (name: string) => boolean;
  },
): void {
  const { info, authority, directory } = parts;
  const versions =
    info.apiVersion === info.version
      ? { version: info.version }
      : { version: info.apiVersion, hub_version: info.version };

  router.get('/', (ctx) => {
    ctx.set('Access-Control-Allow-Origin', '*');
    ctx.body = versions;
  });

  router.get('/info', async (ctx) => {
    requireScopes(ctx, ['read:hub'], await authority.membership());
    ctx.body = {
      ...versions,
      node: info.nodeVersion,
      spawner: { class: info.spawner, version: info.version },
      authenticator: { class: info.authenticators[0]?.class, version: info.version },
      authenticators: info.authenticators,
    };
  });

  router.get('/user', async (ctx) => {
    const caller = callerOf(ctx);
    const { owner, user, scopes, accessToken } = caller;
    const identity = {
      scopes: presentScopes(scopes),
      session_id: caller.sessionId ?? null,
      token_id: accessToken?.id ?? null,
    };
    if (owner.kind === 'service' || user === undefined) {
      ctx.body = {
        kind: 'service',
        name: owner.name,
        admin: parts.isAdminService(owner.name),
        roles: await parts.roleNamesOfService(owner.name),
        ...identity,
      };
      return;
    }
    // Every token may know whose it is, also when that is no scope it holds.
    const shown = new Set([
      ...scopes,
      `read:users:name!user=${user.name}`,
      `read:users:groups!user=${user.name}`,
    ]);
    ctx.body = {
      ...presentUser(await directory.detailsOf(user), shown, await authority.membership()),
      ...identity,
    };
  });
}
