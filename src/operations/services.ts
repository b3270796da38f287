import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import type { LoadReader } from '../cluster/instances/load-reader.ts';
import { endpointsOf } from '../identity/oauth/endpoints/metadata-endpoint.ts';
import type { RoleStore } from '../identity/rbac/role-store.ts';
import type { ScopeCatalogue } from '../identity/rbac/scope-definitions.ts';
import { HubError } from '../platform/errors.ts';
import { loadKeys } from '../platform/metrics/load-history.ts';
import type { Languages } from '../platform/texts/languages.ts';
import { type Phrase, text } from '../platform/texts/text.ts';
import type { Service } from '../workloads/services/service.ts';
import type { ServiceRegistry } from '../workloads/services/service-registry.ts';
import { type PlacedStatus, serviceStates } from '../workloads/services/service-status.ts';
import { accessOver, rolesThatOpen } from './access.ts';
import { errorModel, freeData, loadSpan, names, time } from './models.ts';
import { type ModelOf, type OperationRequest, operation, view } from './operation.ts';
import { answerOutput, type OutputFollowers, outputAnswers, outputQuery } from './output.ts';

export interface ServiceDeps {
  readonly registry: Pick<
    ServiceRegistry,
    'services' | 'find' | 'statusOf' | 'restart' | 'startService' | 'stopService' | 'outputOf'
  >;
  readonly roles: Pick<RoleStore, 'namesGrantedTo' | 'list' | 'firstHolders'>;
  readonly catalogue: ScopeCatalogue;
  readonly loads: Pick<LoadReader, 'read' | 'readHere'>;
  /** `Hub.allow_managed_services_at_runtime`. */
  readonly allowsManaged: boolean;
  /** Path of the API, with a slash at its end. */
  readonly apiPath: string;
  readonly publicUrl: URL;
  readonly outputFollowers: OutputFollowers;
  readonly languages: Pick<Languages, 'find'>;
}

/** Lines of output on the page of a service. */
const shownLines = 200;
/** How long a caller waits for what was asked for to show. */
const maxWaitMs = 1_500;
const pollMs = 25;

const message = z.object({ message: z.string() });
const external = { description: 'It is external: the hub does not run it.', schema: errorModel };

const byHand = {
  byCommand: 'by_running_hub',
  method: 'POST',
  tag: 'services',
  scopes: ['admin:services'],
  target: 'service',
} as const;

/** What a service is and how it is; shown with `read:services`. */
const facts = z.object({
  url: z.string().nullable(),
  prefix: z.string().nullable(),
  command: names,
  source: z.enum(['config', 'api']).describe('`api`: added at run time, and can be changed so.'),
  display: z.boolean(),
  info: freeData,
  access: z.enum(['service', 'gateway', 'public']),
  managed: z.boolean(),
  pid: z.int().nullable(),
  state: z.enum(serviceStates).nullable(),
  instance: z.string().nullable().meta({
    description:
      'Name of the instance of the hub that runs it; null while none does, and for an external one.',
  }),
  ready: z.boolean(),
  since: time.nullable().describe('Since when it is in this state.'),
  stopped: z
    .object({ by: z.string().nullable(), at: time })
    .nullable()
    .describe('Of one that stays stopped until it is started by hand: who stopped it, and when.'),
  restarts: z.int(),
  started: time.nullable(),
  next_start: time.nullable(),
  last_error: z.string().nullable(),
  last_exit: z
    .object({
      code: z.int().nullable(),
      signal: z.string().nullable(),
      leftBehind: z.int(),
      ranForMs: z.number(),
      at: time,
    })
    .nullable(),
  usage: freeData.nullable(),
});

export const serviceModel = z
  .object({
    kind: z.literal('service'),
    name: z.string(),
    admin: z.boolean(),
    roles: names.optional(),
    ...facts.partial().shape,
  })
  .meta({ id: 'Service', description: 'A service, as far as the scopes of the caller show one.' });

/** Services, and how they are. */
export const serviceOperations = [
  operation({
    id: 'listServices',
    byCommand: 'by_running_hub',
    method: 'GET',
    path: '/services',
    tag: 'services',
    summary: 'List services',
    scopes: ['list:services'],
    target: 'services',
    answers: {
      200: {
        description: 'The services by name.',
        schema: z.record(z.string(), serviceModel),
      },
    },
  }).handle(async ({ rows, may }, deps: ServiceDeps) => {
    const visible = deps.registry
      .services()
      .filter(({ name }) => rows === 'all' || rows.services.has(name));
    const roleNames = await roleNamesOf(visible, deps);
    const models = visible.map(
      (service) => [service.name, present(service, roleNames, may, deps)] as const,
    );
    return { status: 200, body: Object.fromEntries(models) };
  }),
  operation({
    id: 'getService',
    method: 'GET',
    path: '/services/{service}',
    tag: 'services',
    summary: 'Read a service and how it is',
    scopes: ['read:services', 'read:services:name', 'read:roles:services'],
    target: 'service',
    answers: { 200: { description: 'What the caller may see.', schema: serviceModel } },
  }).handle(async ({ params, may }, deps: ServiceDeps) => {
    const service = getService(params.service, deps);
    const roleNames = await roleNamesOf([service], deps);
    return { status: 200, body: present(service, roleNames, may, deps) };
  }),
  operation({
    id: 'getServiceOutput',
    method: 'GET',
    path: '/services/{service}/output',
    tag: 'services',
    summary: 'Read or follow the last lines a managed service wrote',
    description: 'Those of an external service are not known.',
    scopes: ['admin:services'],
    target: 'service',
    query: outputQuery,
    answers: outputAnswers,
  }).handle(async (request, deps: ServiceDeps) => {
    const { name } = getService(request.params.service, deps);
    const source = deps.registry.outputOf(name);
    if (source === undefined) throw noSuchService();
    const fileName = `service-${name}.log`;
    const { outputFollowers: followers, languages } = deps;
    return answerOutput(request, source, { followers, languages, fileName });
  }),
  operation({
    ...byHand,
    id: 'startService',
    path: '/services/{service}/start',
    audit: ['service.start'],
    log: 'service started by hand',
    summary: 'Start a managed service that was stopped by hand',
    description: 'One that was not stopped keeps running as it is.',
    answers: {
      202: { description: 'It is starting, or runs.', schema: message },
      400: external,
    },
  }).handle(async ({ params }, deps: ServiceDeps) => {
    await changeState(params.service, deps.registry.startService, deps);
    return { status: 202, body: { message: 'The service is starting.' } };
  }),
  operation({
    ...byHand,
    id: 'stopService',
    path: '/services/{service}/stop',
    audit: ['service.stop'],
    log: 'service stopped by hand',
    summary: 'Stop a managed service until it is started by hand',
    description:
      'It stays stopped over restarts and reloads of the hub, until it is started or its configuration changes.',
    answers: {
      202: { description: 'It is stopping, or has stopped.', schema: message },
      400: external,
    },
  }).handle(async ({ params }, deps: ServiceDeps) => {
    await changeState(params.service, deps.registry.stopService, deps, 'stopped');
    return { status: 202, body: { message: 'The service is stopping.' } };
  }),
  operation({
    ...byHand,
    id: 'restartService',
    path: '/services/{service}/restart',
    audit: ['service.restart', 'service.start'],
    log: 'service restarted by hand',
    summary: 'Restart a managed service',
    description: 'One that was stopped by hand is started.',
    answers: { 202: { description: 'It is restarting.', schema: message } },
  }).handle(async ({ params }, deps: ServiceDeps) => {
    await changeState(params.service, deps.registry.restart, deps);
    return { status: 202, body: { message: 'The service is restarting.' } };
  }),
  view({
    id: 'viewServices',
    path: '/admin/services',
    scopes: ['list:services'],
    target: 'services',
  }).handle((request, deps: ServiceDeps) =>
    visibleServices(request, deps).map((each) => ({
      ...each,
      address: addressOf(each.service),
      load: deps.loads.readHere(loadKeys.service(each.name)),
    })),
  ),
  view({
    id: 'viewService',
    path: '/admin/services/{service}',
    scopes: ['read:services'],
    target: 'service',
    query: z.object({ span: loadSpan }),
  }).handle(async ({ params, query: { span }, may }, deps: ServiceDeps) => {
    const service = getService(params.service, deps);
    const { name, kind, source } = service;
    const status = deps.registry.statusOf(name);
    if (status === undefined) throw noSuchService();
    // What a service writes may hold anything; reading it is a right of its own.
    const mayReadOutput = kind === 'managed' && may('admin:services', { kind: 'service', name });
    const isOfRuntime = source === 'api';
    return {
      service: { ...service, address: addressOf(service) },
      endpoints: endpointsOf(deps.publicUrl),
      status,
      openedBy: may('read:roles') ? await rolesThatOpen(service, deps) : undefined,
      access: may('read:roles')
        ? await accessOver({ kind: 'service', value: name }, deps.roles)
        : undefined,
      load: await deps.loads.read(loadKeys.service(name), span),
      span,
      output: mayReadOutput ? await lastOutputOf(name, deps) : undefined,
      isOfRuntime,
      isEditable: isOfRuntime && (kind === 'external' || deps.allowsManaged),
    };
  }),
];

/** A service that the caller may see in a list. */
interface VisibleService {
  readonly name: string;
  /** Among all services. */
  readonly position: number;
  readonly service: Service;
  readonly status: PlacedStatus;
}

/** Those of the rows whose state the caller may read. */
export function visibleServices(
  { rows, may }: Pick<OperationRequest<never>, 'rows' | 'may'>,
  { registry }: { readonly registry: Pick<ServiceRegistry, 'services' | 'statusOf'> },
): VisibleService[] {
  return registry.services().flatMap((service, position) => {
    const { name } = service;
    const status = registry.statusOf(name);
    const isListed = rows === 'all' || rows.services.has(name);
    if (status === undefined || !isListed || !may('read:services', { kind: 'service', name }))
      return [];
    return [{ name, position, service, status }];
  });
}

function addressOf({ url, origin = '', prefix }: Service): string | undefined {
  return url === undefined ? undefined : origin + prefix;
}

async function lastOutputOf(
  name: string,
  { registry, apiPath }: Pick<ServiceDeps, 'registry' | 'apiPath'>,
): Promise<{ readonly url: string; readonly lines: readonly string[]; readonly problem?: Phrase }> {
  const url = `${apiPath}services/${encodeURIComponent(name)}/output`;
  try {
    const { lines = [] } = (await registry.outputOf(name)?.read(undefined, shownLines)) ?? {};
    return { url, lines };
  } catch (error) {
    if (!(error instanceof HubError)) throw error;
    return { url, lines: [], problem: error.shown.message };
  }
}

/** Changes whether it runs, and waits until that shows: the next to look would else see it as it was. */
async function changeState(
  serviceName: string,
  change: (name: string) => Promise<unknown>,
  deps: ServiceDeps,
  wanted: 'running' | 'stopped' = 'running',
): Promise<void> {
  const { registry } = deps;
  const { name } = getService(serviceName, deps);
  const shown = () => {
    const { state, since } = registry.statusOf(name) ?? {};
    return `${state} ${since?.getTime()}`;
  };
  const before = shown();
  await change(name);
  // Between two runs a service that is wanted may be stopped for a moment.
  const isShown = () =>
    shown() !== before && (wanted === 'stopped' || registry.statusOf(name)?.state !== 'stopped');
  const endMs = performance.now() + maxWaitMs;
  while (!isShown() && performance.now() < endMs) await sleep(pollMs);
}

/** Throws `not_found`. */
export function getService(name: string, { registry }: ServiceDeps): Service {
  const service = registry.find(name);
  if (service === undefined) throw noSuchService();
  return service;
}

function noSuchService(): HubError {
  return new HubError('not_found', text`There is no such service.`);
}

/** Names of the roles of services, by the service's name; one query, however many there are. */
function roleNamesOf(
  services: readonly Service[],
  { roles }: ServiceDeps,
): Promise<ReadonlyMap<string, readonly string[]>> {
  return roles.namesGrantedTo(
    services.map(({ name, isAdmin }) => ({ kind: 'service', name, isAdmin })),
  );
}

function present(
  service: Service,
  roleNames: ReadonlyMap<string, readonly string[]>,
  may: OperationRequest<never>['may'],
  deps: ServiceDeps,
): ModelOf<typeof serviceModel> {
  const { name, isAdmin } = service;
  const resource = { kind: 'service', name } as const;
  return {
    kind: 'service',
    name,
    // A caller who may know that a service exists may know that it is an administrator's.
    admin: isAdmin,
    ...(may('read:roles:services', resource) && { roles: roleNames.get(name) ?? [] }),
    ...(may('read:services', resource) && describe(service, deps)),
  };
}

/** Everything there is to say of a service. */
export async function describeService(
  service: Service,
  deps: ServiceDeps,
): Promise<ModelOf<typeof serviceModel>> {
  return present(service, await roleNamesOf([service], deps), () => true, deps);
}

function describe(service: Service, { registry }: ServiceDeps): ModelOf<typeof facts> {
  const status = registry.statusOf(service.name);
  const { lastExit } = status ?? {};
  return {
    url: service.url ?? null,
    prefix:
      service.url === undefined && !service.isBehindProxy
        ? null
        : (service.origin ?? '') + service.prefix,
    command: service.launch?.command ?? [],
    source: service.source,
    display: service.isDisplayed,
    info: service.info,
    access: service.access,
    managed: service.kind === 'managed',
    pid: status?.pid ?? null,
    state: status?.state ?? null,
    instance: status?.instance ?? null,
    ready: status?.isReady ?? false,
    since: status?.since?.toISOString() ?? null,
    stopped:
      status?.stopped === undefined
        ? null
        : { by: status.stopped.by ?? null, at: status.stopped.at.toISOString() },
    restarts: status?.restarts ?? 0,
    started: status?.startedAt?.toISOString() ?? null,
    next_start: status?.nextStartAt?.toISOString() ?? null,
    last_error: status?.lastError === undefined ? null : String(status.lastError),
    last_exit: lastExit === undefined ? null : { ...lastExit, at: lastExit.at.toISOString() },
    usage: status?.usage === undefined ? null : { ...status.usage },
  };
}
