import { z } from 'zod';
import { dateOf } from '../platform/concurrency/monotonic-clock.ts';
import { HubError } from '../platform/errors.ts';
import { text } from '../platform/texts/text.ts';
import type { RouteOwner } from '../traffic/proxy/route.ts';
import type { RouteTable } from '../traffic/proxy/route-table.ts';
import type { ServerLifecycle } from '../workloads/servers/server-lifecycle.ts';
import { errorModel, freeData, time } from './models.ts';
import { type ModelOf, operation } from './operation.ts';

export interface Deps {
  readonly lifecycle: Pick<ServerLifecycle, 'checkRoutes'>;
  readonly routes: Pick<RouteTable, 'list'>;
  /** Where the hub itself answers. */
  readonly hubRoute: { readonly prefix: string; readonly target: string };
}

const ownerModel = z
  .union([
    z.object({ hub: z.literal(true) }),
    z.object({ service: z.string() }),
    z.object({ user: z.string(), server_name: z.string() }),
    z.object({ extra: z.literal(true).describe('Of `Proxy.extra_routes`.') }),
  ])
  .describe('Whose route it is.');

const routeModel = z
  .object({
    routespec: z.string().describe('Path prefix, after a host name if it is for one.'),
    target: z.string(),
    access: z.enum(['service', 'server', 'gateway', 'public', 'foreign']),
    ready: z.boolean(),
    last_activity: time.nullable().describe("Of the hub's own route nothing is kept."),
    data: ownerModel,
  })
  .meta({ id: 'Route' });

type RouteModel = ModelOf<typeof routeModel>;

/** The proxy table. */
export const proxyOperations = [
  operation({
    id: 'getRoutes',
    method: 'GET',
    path: '/proxy',
    tag: 'hub',
    summary: 'Read the proxy table',
    scopes: ['proxy'],
    isPaged: true,
    answers: {
      200: { description: 'The routes by prefix.', schema: z.record(z.string(), routeModel) },
    },
  }).handle(({ page: { offset, limit } }, { routes, hubRoute }: Deps) => {
    const all = [toModel(hubRoute), ...routes.list().map(toRouteModel)].sort(byPrefix);
    const shown = all.slice(offset, offset + limit);
    return {
      status: 200,
      items: Object.fromEntries(shown.map((route) => [route.routespec, route])),
      total: all.length,
    };
  }),
  operation({
    id: 'checkRoutes',
    method: 'POST',
    path: '/proxy',
    audit: { none: 'It compares the routes with the servers, which happens all the time.' },
    tag: 'hub',
    summary: 'Compare the proxy table with the servers that run, now',
    description:
      'The hub does so by itself; this answers when it is done, with several hubs at the one that answers.',
    scopes: ['proxy'],
    answers: { 200: { description: 'The table is right.' } },
  }).handle(async (_request, { lifecycle }: Deps) => {
    await lifecycle.checkRoutes();
    return { status: 200 };
  }),
  operation({
    id: 'replaceProxy',
    method: 'PATCH',
    path: '/proxy',
    audit: { none: 'There is no other proxy to change to.' },
    tag: 'hub',
    summary: 'Refused: the proxy is part of the hub',
    scopes: ['proxy'],
    body: freeData.describe('The address and the token of another proxy.'),
    answers: { 409: { description: 'Always.', schema: errorModel } },
  }).handle((): never => {
    throw new HubError('conflict', text`The proxy is part of this hub, and cannot be replaced.`, {
      hint: text`More proxies are gateway processes: see Hub.gateways.`,
    });
  }),
];

function toModel({ prefix, target }: Deps['hubRoute']): RouteModel {
  return {
    routespec: prefix,
    target,
    access: 'public',
    ready: true,
    last_activity: null,
    data: { hub: true },
  };
}

function toRouteModel(route: ReturnType<Deps['routes']['list']>[number]): RouteModel {
  return {
    routespec: route.key,
    target: route.target,
    access: route.access,
    ready: route.isReady,
    last_activity: dateOf(route.lastActivityMs).toISOString(),
    data: dataOf(route.owner),
  };
}

function dataOf(owner: RouteOwner): ModelOf<typeof ownerModel> {
  switch (owner.kind) {
    case 'service':
      return { service: owner.name };
    case 'server':
      return { user: owner.userName, server_name: owner.serverName };
    case 'extra':
      return { extra: true };
  }
}

function byPrefix(left: RouteModel, right: RouteModel): number {
  return left.routespec < right.routespec ? -1 : 1;
}
