import { z } from 'zod';
import type { ServiceConfig } from '../platform/config/config.ts';
import { HubError } from '../platform/errors.ts';
import { text } from '../platform/texts/text.ts';
import {
  maxSecretLength,
  type RuntimeService,
  serviceDefinition,
  versionOfService,
} from '../workloads/services/runtime-service.ts';
import type {
  ServiceAdministration,
  ServiceOutcome,
  ServiceRequest,
} from '../workloads/services/service-administration.ts';
import { operation, view } from './operation.ts';
import { describeService, getService, type ServiceDeps, serviceModel } from './services.ts';

export interface Deps extends ServiceDeps {
  readonly serviceAdministration: ServiceAdministration;
}

const apiToken = z
  .string()
  .max(maxSecretLength)
  .describe(
    'Token of an external service, which is its OAuth client secret, too; longer than 8 characters. Made by the hub where none is given.',
  );

const whole = serviceDefinition.extend({ api_token: apiToken.optional() });
const optionalWhole = whole.prefault({});
/** Without the defaults, so that what is left out stays as it is. */
const change = z
  .strictObject(
    Object.fromEntries(
      Object.entries(serviceDefinition.shape).map(([key, schema]) => [
        key,
        (schema instanceof z.ZodDefault ? schema.unwrap() : schema).nullish(),
      ]),
    ) as Readonly<Record<string, z.ZodType>>,
  )
  .extend({ api_token: apiToken.optional() })
  .describe('What is null is as if it had been left out at first.');

const newServiceModel = serviceModel
  .extend({
    api_token: z.string().optional().describe('Where the hub made it; shown this once.'),
  })
  .meta({ id: 'NewService' });

const rule =
  'The caller must hold everything that the service may do: all scopes of administrators with `admin`, `command` or `oauth_no_confirm`, those that its client may ask users for, those of its roles; and `access:servers` and `access:services` to set its `url`. Where visitors or logins are led to it, all but `display`, `info` and the timeouts need access to it, for a new one to all services, and what its rules leave to groups.';

/** Services that are added at run time, beside those of the configuration. */
export const runtimeServiceOperations = [
  operation({
    id: 'createService',
    method: 'POST',
    path: '/services/{service}',
    tag: 'services',
    summary: 'Add a service',
    description: `It is routed at once, at every hub and gateway, and kept over restarts. ${rule}`,
    scopes: ['admin:services'],
    audit: ['service.create'],
    needsRecentLogin: true,
    isVersioned: true,
    body: optionalWhole,
    answers: { 201: { description: 'The new service.', schema: newServiceModel } },
  }).handle(async ({ params, body, caller }, deps: Deps) => {
    const made = await deps.serviceAdministration.create(caller, params.service, requestOf(body));
    return { status: 201, ...(await answerOf(made, deps)) };
  }),
  operation({
    id: 'putService',
    method: 'PUT',
    path: '/services/{service}',
    tag: 'services',
    summary: 'Add a service, or make it what is asked for',
    description: `What is left out is as in a new one, but for the token, which stays. The same twice changes and restarts nothing. ${rule}`,
    scopes: ['admin:services'],
    audit: ['service.change', 'service.create'],
    needsRecentLogin: true,
    isVersioned: true,
    body: whole,
    answers: {
      200: { description: 'The service.', schema: newServiceModel },
      201: { description: 'The new service.', schema: newServiceModel },
    },
  }).handle(async ({ params, body, caller, requireVersion }, deps: Deps) => {
    const { serviceAdministration } = deps;
    const request = requestOf(body);
    const done = await serviceAdministration.put(caller, params.service, request, requireVersion);
    const answer = await answerOf(done, deps);
    return done.outcome === 'created' ? { status: 201, ...answer } : { status: 200, ...answer };
  }),
  operation({
    id: 'changeService',
    method: 'PATCH',
    path: '/services/{service}',
    tag: 'services',
    summary: 'Change a service that was added at run time',
    description: `Another \`api_token\` ends the one before at once. ${rule}`,
    scopes: ['admin:services'],
    target: 'service',
    audit: ['service.change'],
    needsRecentLogin: true,
    isVersioned: true,
    body: change,
    answers: { 200: { description: 'The service.', schema: newServiceModel } },
  }).handle(async ({ params, body, caller, requireVersion }, deps: Deps) => {
    const done = await deps.serviceAdministration.change(
      caller,
      params.service,
      (definition) => changed(definition, body),
      requireVersion,
    );
    return { status: 200, ...(await answerOf(done, deps)) };
  }),
  operation({
    id: 'editService',
    audience: 'page',
    method: 'POST',
    path: '/admin/services/{service}/edit',
    tag: 'services',
    summary: 'Change a service as its form shows it: one title, which is a part of its info',
    scopes: ['admin:services'],
    target: 'service',
    audit: ['service.change'],
    needsRecentLogin: true,
    body: z.strictObject({ title: z.string(), changes: change }),
    answers: { 204: { description: 'It is changed.' } },
  }).handle(async ({ params, body, caller, requireVersion }, deps: Deps) => {
    const { title, changes } = body;
    await deps.serviceAdministration.change(
      caller,
      params.service,
      (before) => changed(before, { ...changes, info: titled(before.info, title) }),
      requireVersion,
    );
  }),
  operation({
    id: 'deleteService',
    method: 'DELETE',
    path: '/services/{service}',
    tag: 'services',
    summary: 'Delete a service that was added at run time',
    description:
      'With its token, its roles and every token that users gave its client. The caller must hold everything that it may do.',
    scopes: ['admin:services'],
    target: 'service',
    audit: ['service.delete'],
    needsRecentLogin: true,
    isVersioned: true,
    answers: { 200: { description: 'The service is gone.' } },
  }).handle(async ({ params, caller, requireVersion }, deps: Deps) => {
    await deps.serviceAdministration.delete(caller, params.service, requireVersion);
    return { status: 200 };
  }),
  view({ id: 'viewNewService', path: '/admin/new-service', scopes: ['admin:services'] }).handle(
    (_request, { allowsManaged }: Deps) => ({ allowsManaged }),
  ),
  view({
    id: 'viewServiceForm',
    path: '/admin/services/{service}/edit',
    scopes: ['admin:services'],
    target: 'service',
  }).handle(async ({ params }, deps: Deps) => {
    const service = await versioned(params.service, deps);
    if (service.definition.command !== undefined && !deps.allowsManaged) {
      throw new HubError('forbidden', text`Commands cannot be changed while the hub runs.`, {
        hint: text`Hub.allow_managed_services_at_runtime allows them.`,
      });
    }
    return service;
  }),
  view({
    id: 'viewServiceDeletion',
    path: '/admin/services/{service}/delete',
    scopes: ['admin:services'],
    target: 'service',
  }).handle(({ params }, deps: Deps) => versioned(params.service, deps)),
];

async function versioned(
  name: string,
  { serviceAdministration }: Pick<Deps, 'serviceAdministration'>,
): Promise<RuntimeService & { readonly version: string }> {
  const service = await serviceAdministration.find(name);
  if (service !== undefined) return { ...service, version: versionOfService(service) };
  throw new HubError('not_found', text`No such service was added at run time.`);
}

function changed(
  { name: _name, ...definition }: ServiceConfig,
  { api_token, ...changes }: z.output<typeof change>,
): ServiceRequest {
  const merged = Object.entries({ ...definition, ...changes }).filter(
    ([, value]) => value !== null && value !== undefined,
  );
  return requestOf({
    ...serviceDefinition.parse(Object.fromEntries(merged)),
    api_token: api_token as string | undefined,
  });
}

/** One title in languages is changed over the API: the form has a field for one text. */
function titled(info: ServiceConfig['info'], title: string): ServiceConfig['info'] {
  const { title: former, ...further } = info;
  if (title !== '') return { ...further, title };
  return typeof former === 'object' && former !== null ? info : further;
}

function requestOf({ api_token, ...definition }: z.output<typeof whole>): ServiceRequest {
  return { definition, apiToken: api_token };
}

async function answerOf({ service, token }: ServiceOutcome, deps: ServiceDeps) {
  const found = getService(service.definition.name, deps);
  const body = {
    ...(await describeService(found, deps)),
    ...(token !== undefined && { api_token: token }),
  };
  return { body, version: versionOfService(service) };
}
