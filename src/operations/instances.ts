import { z } from 'zod';
import type { GatewayView, InstanceOverview } from '../cluster/instances/instance-overview.ts';
import type { LoadReader } from '../cluster/instances/load-reader.ts';
import { loadKeys } from '../platform/metrics/load-history.ts';
import { loadSpan, names, time } from './models.ts';
import { operation, view } from './operation.ts';

export interface Deps {
  readonly instances: InstanceOverview;
  readonly loads: Pick<LoadReader, 'readEach'>;
}

const figures = z.object({
  memory_bytes: z.number().describe('Resident memory of the process.'),
  cpu_cores: z.number().describe('Cores it has used since it was asked last; 1 is one core.'),
  load_average: z.number().describe('Of its machine, over the last minute.'),
  machine_cores: z.int(),
});

const gatewayModel = z
  .object({
    name: z.string(),
    version: z.string(),
    local: z.boolean().describe('Whether the instance, or one before it, started it.'),
    host: z.string(),
    pid: z.int(),
    started: time,
    connections: z.int().describe('Of clients, open.'),
    web_sockets: z.int(),
    requests: z.int().describe('Forwarded to servers and services since it was started.'),
    feed_lag_seconds: z
      .number()
      .describe('How old its last news of the hub was; up to a second where all is well.'),
  })
  .partial({
    host: true,
    pid: true,
    started: true,
    connections: true,
    web_sockets: true,
    requests: true,
    feed_lag_seconds: true,
  })
  .meta({
    id: 'Gateway',
    description:
      'A gateway process that follows an instance. What it has not told yet is left out.',
  });

const instanceModel = z
  .object({
    name: z.string().describe('`Hub.instance_name`.'),
    version: z.string(),
    started: time,
    host: z.string(),
    pid: z.int(),
    address: z.string().nullable().describe('Where the others reach its internal listener.'),
    here: z.boolean().describe('Whether it is the one that answers.'),
    up: z.boolean(),
    down_since: time
      .nullable()
      .describe('Since when, 15 seconds early at most, for one that is not up; null on SQLite.'),
    lease_until: time
      .nullable()
      .describe(
        'Until when no other takes over its services; null on SQLite, where there is none.',
      ),
    same_settings: z
      .boolean()
      .describe('Whether its settings are those of the instance that answers.'),
    servers: z.int().describe("Users' servers that it runs, or ran last."),
    services: names.describe('Managed services that it runs, or ran last.'),
    gateways: z.array(gatewayModel).describe('Gateway processes that follow it, by name.'),
    figures: figures.nullable().describe('Null for one that does not answer.'),
    problem: z.string().nullable().describe('Why it does not answer.'),
  })
  .meta({ id: 'Instance', description: 'A process of the hub, of those that share a database.' });

/** The processes that are the hub together. */
export const instanceOperations = [
  operation({
    id: 'listInstances',
    method: 'GET',
    path: '/instances',
    tag: 'hub',
    summary: 'List the instances of the hub, and what each of them runs',
    scopes: ['read:hub'],
    answers: {
      200: {
        description: 'By name.',
        schema: z.object({ instances: z.array(instanceModel) }),
      },
    },
  }).handle(async (_request, { instances }: Deps) => ({
    status: 200,
    body: {
      instances: (await instances.list()).map((view) => ({
        name: view.instance.name,
        version: view.instance.version,
        started: view.instance.startedAt.toISOString(),
        host: view.instance.host,
        pid: view.instance.process.pid,
        address: view.instance.url ?? null,
        here: view.isHere,
        up: view.isUp,
        down_since: view.downSince?.toISOString() ?? null,
        lease_until: view.leaseUntil?.toISOString() ?? null,
        same_settings: !view.hasOtherSettings,
        servers: view.owned.servers,
        services: [...view.owned.services],
        gateways: view.gateways.map(presentGateway),
        figures:
          view.figures === undefined
            ? null
            : {
                memory_bytes: view.figures.memoryBytes,
                cpu_cores: view.figures.cpuCores,
                load_average: view.figures.loadAverage,
                machine_cores: view.figures.machineCores,
              },
        problem: view.problem === undefined ? null : String(view.problem),
      })),
    },
  })),
  view({
    id: 'viewInstances',
    path: '/admin/instances',
    scopes: ['read:hub'],
    query: z.object({ span: loadSpan }),
  }).handle(async ({ query: { span } }, deps: Deps) => {
    const [instances, loads] = await Promise.all([
      deps.instances.list(),
      deps.loads.readEach(loadKeys.instance, span),
    ]);
    return { instances, loads, span };
  }),
];

function presentGateway({ name, version, isLocal, reported }: GatewayView) {
  return {
    name,
    version,
    local: isLocal,
    ...(reported !== undefined && {
      host: reported.host,
      pid: reported.pid,
      started: new Date(reported.startedAtMs).toISOString(),
      connections: reported.connections,
      web_sockets: reported.webSockets,
      requests: reported.requests,
      feed_lag_seconds: reported.feedLagMs / 1000,
    }),
  };
}
