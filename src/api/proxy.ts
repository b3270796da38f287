import { z } from 'zod';
import type { RouteTable } from '../proxy/route-table.ts';
import { freeData, time } from './models.ts';
import { operation } from './operation.ts';

interface Deps {
  readonly routes: Pick<RouteTable, 'list'>;
}

const routeModel = z
  .object({
    routespec: z.string().describe('Path prefix.'),
    target: z.string(),
    access: z.enum(['service', 'server', 'gateway', 'public']),
    ready: z.boolean(),
    last_activity: time,
    data: freeData,
  })
  .meta({ id: 'Route' });

/** The proxy table. */
export const proxyOperations = [
  operation({
    id: 'getRoutes',
    method: 'GET',
    path: '/proxy',
    tag: 'hub',
    summary: 'Read the proxy table',
    scopes: ['proxy'],
    answers: {
      200: { description: 'The routes by prefix.', schema: z.record(z.string(), routeModel) },
    },
  }).handle((_request, { routes }: Deps) => ({
    status: 200,
    body: Object.fromEntries(
      routes.list().map((route) => [
        route.prefix,
        {
          routespec: route.prefix,
          target: route.target,
          access: route.access,
          ready: route.isReady,
          last_activity: new Date(route.lastActivityMs).toISOString(),
          data: { ...route.owner },
        },
      ]),
    ),
  })),
];
