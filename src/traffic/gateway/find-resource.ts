import type { FindResource } from '../../identity/oauth/resource-indicators.ts';
import type { Origins } from '../../platform/http/origins.ts';
import { canonicalPath, decodePath } from '../../platform/http/request-address.ts';
import type { RouteTable } from '../proxy/route-table.ts';
import { isProtected } from './protected-resources.ts';

/** Whether a user has a server of that name. */
interface ServersByName {
  find(userName: string, serverName: string): Promise<object | undefined>;
}

/** The server of a user that a path below theirs names: a named one, where there is one of the name; else the default one. */
export async function serverNameAt(
  userName: string,
  rest: string,
  servers: ServersByName,
): Promise<string> {
  const name = decodePath(rest.split('/', 1)[0] ?? '') ?? '';
  return name === '' || (await servers.find(userName, name)) === undefined ? '' : name;
}

/** Finds services by their routes, and users' servers by their names, as those that are stopped have no routes. */
export function createFindResource({
  routes,
  origins,
  basePath,
  serverStore,
}: {
  readonly routes: Pick<RouteTable, 'match' | 'hasHosts'>;
  readonly origins: Pick<Origins, 'of'>;
  readonly basePath: string;
  readonly serverStore: ServersByName;
}): FindResource {
  return async (url) => {
    const path = canonicalPath(url.pathname);
    if (path === undefined) return undefined;
    const match = routes.match(path, routes.hasHosts ? url.hostname : undefined);
    const [, user, rest = ''] =
      /^user\/([^/]+)(?:\/(.*))?$/.exec(below(basePath, path.pathname)) ?? [];
    const userName = user === undefined ? undefined : decodePath(user);
    if (userName !== undefined && match?.kind !== 'nowhere') {
      const serverName = await serverNameAt(userName, rest, serverStore);
      const target = { kind: 'server', userName, serverName } as const;
      return origins.of(target) === url.origin ? target : undefined;
    }
    if (match?.kind !== 'forward' && match?.kind !== 'redirect') return undefined;
    const { owner, origin = origins.of(owner) } = match.route;
    return isProtected(match.route) && owner.kind !== 'extra' && origin === url.origin
      ? owner
      : undefined;
  };
}

function below(basePath: string, pathname: string): string {
  return pathname.startsWith(basePath) ? pathname.slice(basePath.length) : '';
}
