import { z } from 'zod';
import type { InstanceDirectory } from '../cluster/instances/instance-directory.ts';
import type { LoadReader, LoadReport } from '../cluster/instances/load-reader.ts';
import type { UserStore } from '../identity/users/user-store.ts';
import { HubError } from '../platform/errors.ts';
import { type LoadSeries, type LoadSpan, loadKeys } from '../platform/metrics/load-history.ts';
import { text } from '../platform/texts/text.ts';
import type { ServerStore } from '../workloads/servers/server-store.ts';
import { names } from './models.ts';
import { type ModelOf, operation } from './operation.ts';
import { getService, type ServiceDeps } from './services.ts';

export interface Deps extends ServiceDeps {
  readonly users: Pick<UserStore, 'getByName'>;
  readonly serverStore: Pick<ServerStore, 'find'>;
  readonly loads: Pick<LoadReader, 'read' | 'readEach' | 'readHere'>;
  readonly directory: Pick<InstanceDirectory, 'find'>;
}

const query = z.object({
  span: z
    .enum(['hour', 'day'])
    .default('hour')
    .describe('The last hour in steps of 10 seconds, or the last day in steps of 5 minutes.'),
});

const figures = (what: string) => z.array(z.number().nullable()).describe(what);
const seriesModel = z.object({
  step_seconds: z.number(),
  cpu_cores: figures('Cores in use; 1 is one core.'),
  memory_bytes: figures('Resident memory.'),
  requests_per_second: figures('Forwarded.'),
  response_seconds: figures('Until an answer began, on average.'),
  web_sockets: figures('Open, on average.'),
});

const loadModel = seriesModel
  .extend({
    missing_instances: names.describe(
      'Instances of the hub that did not answer: what they know is missing.',
    ),
  })
  .meta({
    id: 'Load',
    description:
      'How busy something was: lists of one length, oldest first, the last figure being of now. Null where nothing was measured.',
  });

const answers = { 200: { description: 'Its load.', schema: loadModel } } as const;

function loadOfServerAt(
  path: '/users/{name}/server' | '/users/{name}/servers/{server}',
  suffix: string,
  which: string,
) {
  return operation({
    id: `getLoadOf${suffix}`,
    method: 'GET',
    path: `${path}/load`,
    tag: 'servers',
    target: 'server',
    summary: `Read how busy ${which} was`,
    scopes: ['read:servers'],
    query,
    answers,
  }).handle(async ({ params, query: { span } }, deps: Deps) => {
    const { name, server = '' } = params as Readonly<Record<'name' | 'server', string>>;
    await deps.users.getByName(name);
    const found = await deps.serverStore.find(name, server);
    if (found === undefined) throw new HubError('not_found', text`There is no such server.`);
    return { status: 200, body: await present(loadKeys.server(found.id), span, deps) };
  });
}

/** How busy servers, services and the hub were. */
export const loadOperations = [
  loadOfServerAt('/users/{name}/server', 'DefaultServer', "a user's default server"),
  loadOfServerAt('/users/{name}/servers/{server}', 'NamedServer', 'a named server'),
  operation({
    id: 'getLoadOfService',
    method: 'GET',
    path: '/services/{service}/load',
    tag: 'services',
    target: 'service',
    summary: 'Read how busy a service was',
    scopes: ['read:services'],
    query,
    answers,
  }).handle(async ({ params, query: { span } }, deps: Deps) => {
    const { name } = getService(params.service, deps);
    return { status: 200, body: await present(loadKeys.service(name), span, deps) };
  }),
  operation({
    id: 'getLoadOfInstances',
    method: 'GET',
    path: '/instances/load',
    tag: 'hub',
    summary: 'Read how busy the instances of the hub were',
    description: 'Their own processes; requests are those that they answered or forwarded.',
    scopes: ['read:hub'],
    query,
    answers: {
      200: {
        description: 'Together, and by name.',
        schema: z.object({
          together: loadModel,
          instances: z.record(z.string(), seriesModel),
        }),
      },
    },
  }).handle(async ({ query: { span } }, deps: Deps) => {
    const { byInstance, together } = await deps.loads.readEach(loadKeys.instance, span);
    const named = [...byInstance].map(
      ([id, series]) => [deps.directory.find(id)?.name ?? id, presentSeries(series)] as const,
    );
    return {
      status: 200,
      body: { together: presentReport(together), instances: Object.fromEntries(named) },
    };
  }),
];

async function present(key: string, span: LoadSpan, { loads }: Deps) {
  return presentReport(await loads.read(key, span));
}

function presentReport({ series, silent }: LoadReport): ModelOf<typeof loadModel> {
  return { ...presentSeries(series), missing_instances: silent };
}

function presentSeries(series: LoadSeries | undefined): ModelOf<typeof seriesModel> {
  const { stepSeconds = 0, figures: known } = series ?? {};
  return {
    step_seconds: stepSeconds,
    cpu_cores: known?.cpuCores ?? [],
    memory_bytes: known?.memoryBytes ?? [],
    requests_per_second: known?.requestsPerSecond ?? [],
    response_seconds: known?.responseSeconds ?? [],
    web_sockets: known?.webSockets ?? [],
  };
}
