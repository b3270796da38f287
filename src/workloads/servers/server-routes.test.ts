import { expect, test } from 'vitest';
import { createRouteTable } from '../../traffic/proxy/route-table.ts';
import type { Server } from './server.ts';
import { createServerRoutes } from './server-routes.ts';

const server = { id: 's', userId: 'u', userName: 'ada', name: '' } as Server;

test('a route that is opened is no traffic, and a request through it is', () => {
  const table = createRouteTable({ reservedPrefixes: ['/hub/'], sessionIdAliases: [] });
  const routes = createServerRoutes({
    routes: table,
    basePath: '/',
    origins: { urlOf: (path) => path },
    accessOf: () => ({
      access: 'gateway',
      readyPath: '/',
      stripsPrefix: false,
      forwarding: undefined,
    }),
  });
  routes.open(server, 'http://127.0.0.1:1');
  expect([...routes.collectTraffic()]).toEqual([]);
  const route = table.find('/user/ada/');
  if (route === undefined) throw new Error('there is no route');
  route.lastActivityMs = performance.now() + 1;
  expect([...routes.collectTraffic()]).toMatchObject([{ serverId: 's', userId: 'u' }]);
});
