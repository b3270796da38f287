import { expect, test } from 'vitest';
import { createRouteTable } from '../../traffic/proxy/route-table.ts';
import type { Server } from './server.ts';
import { createServerRoutes } from './server-routes.ts';

const server = { id: 's', userId: 'u', userName: 'ada', name: '' } as Server;

function openRoutes(isMeasured: boolean) {
  const table = createRouteTable({ reservedPrefixes: ['/hub/'], sessionIdAliases: [] });
  const routes = createServerRoutes({
    routes: table,
    basePath: '/',
    origins: { urlOf: (path) => path },
    isMeasured: () => isMeasured,
    accessOf: () => ({
      access: 'gateway',
      readyPath: '/',
      kernelsPath: undefined,
      stripsPrefix: false,
      forwarding: undefined,
      limits: undefined,
    }),
  });
  routes.open(server, 'http://127.0.0.1:1');
  const route = table.find('/user/ada/');
  if (route === undefined) throw new Error('there is no route');
  return { routes, route };
}

test.each([true, false])(
  'a route that is opened is no traffic, and a request through it is',
  (isMeasured) => {
    const { routes, route } = openRoutes(isMeasured);
    expect([...routes.collectTraffic()]).toEqual([]);
    route.lastActivityMs = route.lastUseMs = performance.now() + 1;
    expect([...routes.collectTraffic()]).toMatchObject([{ serverId: 's', userId: 'u' }]);
  },
);

test('what a server sends is use only where it is not known how much it works', () => {
  for (const isMeasured of [true, false]) {
    const { routes, route } = openRoutes(isMeasured);
    route.lastActivityMs = performance.now() + 1;
    expect([...routes.collectTraffic()].length).toBe(isMeasured ? 0 : 1);
  }
});
