import type { Logger } from 'pino';
import type { Caller } from '../../identity/rbac/access-check.ts';
import { defaultRoles } from '../../identity/rbac/role.ts';
import { quoteScope } from '../../identity/rbac/scope.ts';
import type { ScopeCatalogue } from '../../identity/rbac/scope-definitions.ts';
import { scopeProblem } from '../../identity/rbac/validate-roles.ts';
import { isMetadataAddress } from '../../platform/addresses/host-address.ts';
import { issueProblem } from '../../platform/config/common-schema.ts';
import type { ServiceConfig } from '../../platform/config/config.ts';
import { Secret } from '../../platform/config/secret.ts';
import { serviceSchema } from '../../platform/config/service-schema.ts';
import { hashSecret } from '../../platform/crypto/hash.ts';
import { randomToken } from '../../platform/crypto/random.ts';
import type { RequireVersion } from '../../platform/crypto/version.ts';
import { HubError } from '../../platform/errors.ts';
import { hubCommand } from '../../platform/files/program-folder.ts';
import { fieldError } from '../../platform/http/field-error.ts';
import { text } from '../../platform/texts/text.ts';
import {
  isDisplaced,
  isReachable,
  type RuntimeService,
  type ServiceDefinition,
  versionOfService,
} from './runtime-service.ts';
import type { RuntimeServiceStore } from './runtime-service-store.ts';
import { calledAddresses } from './service.ts';
import type { ServiceFacts } from './validate-services.ts';
import { findServiceProblems, type ServiceToValidate } from './validate-services.ts';

/** What a service is asked to be. */
export interface ServiceRequest {
  readonly definition: ServiceDefinition;
  /** Undefined keeps the one it has, or makes one. */
  readonly apiToken: string | undefined;
}

/** What became of a request. */
export interface ServiceOutcome {
  readonly outcome: 'created' | 'changed' | 'same';
  readonly service: RuntimeService;
  /** Its token, where it was made here: it is shown this once. */
  readonly token: string | undefined;
}

/**
 * Services at run time. What a service may do, its callers may do themselves: of one that is added, changed or
 * deleted they hold everything that it, its roles and its client may do, before and after. They get in themselves
 * where they change who gets in, or where visitors and logins go. All throw `bad_request`
 * for what is wrong with a service, `conflict` for what another one has, `forbidden` for what the caller lacks,
 * `not_found`, and `method_not_allowed` for a service of the configuration.
 */
export interface ServiceAdministration {
  /** Throws `conflict` when there is one of that name. */
  create(caller: Caller, name: string, request: ServiceRequest): Promise<ServiceOutcome>;
  /** Adds it, or makes it what is asked for; the same twice changes nothing. */
  put(
    caller: Caller,
    name: string,
    request: ServiceRequest,
    requireVersion: RequireVersion,
  ): Promise<ServiceOutcome>;
  /** Changes it to what is made of it as it is. */
  change(
    caller: Caller,
    name: string,
    edit: (definition: ServiceConfig) => ServiceRequest,
    requireVersion: RequireVersion,
  ): Promise<ServiceOutcome>;
  delete(caller: Caller, name: string, requireVersion: RequireVersion): Promise<void>;
  /** One that was added at run time. */
  find(name: string): Promise<RuntimeService | undefined>;
}

export interface ServiceAdministrationDeps {
  readonly store: RuntimeServiceStore;
  /** `Hub.services` of the configuration in force. */
  readonly configured: () => readonly ServiceConfig[];
  /** Takes over what the store holds. */
  readonly refresh: () => Promise<void>;
  readonly gatherFacts: (service: ServiceConfig) => Promise<ServiceFacts>;
  /** Folder against which `cwd` is resolved. */
  readonly directory: string;
  readonly hubUrls: readonly string[];
  /** `Hub.allow_managed_services_at_runtime`. */
  readonly allowsManaged: boolean;
  readonly catalogue: ScopeCatalogue;
  /** Those that the caller does not hold and so may not give. */
  readonly excessScopes: (
    caller: Caller,
    scopes: readonly string[],
    options?: { readonly forAnyHolder: boolean },
  ) => Promise<readonly string[]>;
  /** Throws `forbidden` for who does not give what only the members of a group may pass. */
  readonly requireMayOpenTo: (caller: Caller, groupName: string) => Promise<void>;
  /** Everything that a service may do through all its roles. */
  readonly scopesOfService: (name: string) => Promise<ReadonlySet<string>>;
}

/** Services that are added at run time. */
export const maxRuntimeServices = 200;
/** What decides neither who gets in nor where visitors, logins and the hub's own requests go; all else may. */
const harmlessFields: ReadonlySet<string> = new Set([
  'display',
  'info',
  'timeout',
  'stop_timeout',
  'upstream_timeout',
]);
/** Characters of JSON of one service. */
const maxDefinitionLength = 64 * 1024;
/** What a caller needs who has the hub send requests to an address. */
const routingScopes = ['access:servers', 'access:services'];

export function createServiceAdministration(
  deps: ServiceAdministrationDeps,
): ServiceAdministration {
  const { store, excessScopes } = deps;

  async function find(name: string): Promise<RuntimeService | undefined> {
    return (await store.list()).find(({ definition }) => definition.name === name);
  }

  async function getChangeable(name: string): Promise<RuntimeService> {
    refuseConfigured(name);
    const service = await find(name);
    if (service !== undefined) return service;
    throw new HubError('not_found', text`Service ${name} does not exist`);
  }

  function refuseConfigured(name: string): void {
    if (!deps.configured().some((service) => service.name === name)) return;
    throw new HubError('method_not_allowed', text`Service ${name} is not modifiable at runtime`, {
      hint: text`It comes from the configuration: change Hub.services, then run ${hubCommand('reload')}.`,
    });
  }

  /** For a service as it is: who changes it could otherwise act with its rights. */
  async function requireMayTakeOver(caller: Caller, service: RuntimeService): Promise<void> {
    const { definition } = service;
    const held = [...(await deps.scopesOfService(definition.name))];
    const excess = [...(await excessScopes(caller, held)), ...(await excessOf(caller, definition))];
    if (excess.length === 0) return;
    throw new HubError('forbidden', text`This service may do more than you may.`, lacking(excess));
  }

  async function excessOf(
    caller: Caller,
    { admin, command, oauth_no_confirm, oauth_client_allowed_scopes }: ServiceConfig,
  ): Promise<readonly string[]> {
    // A command runs as the hub, and who takes consent in the place of users acts for all of them.
    const needsAdmin = admin || command !== undefined || oauth_no_confirm === true;
    return [
      ...(await excessScopes(caller, needsAdmin ? defaultRoles.admin.scopes : [])),
      ...(await excessScopes(caller, oauth_client_allowed_scopes, { forAnyHolder: true })),
    ];
  }

  async function requireMayMake(
    caller: Caller,
    before: RuntimeService | undefined,
    after: ServiceConfig,
  ): Promise<void> {
    if (after.command !== undefined && !deps.allowsManaged) {
      const message = text`Can not create managed service ${after.name} at runtime`;
      throw new HubError('bad_request', message, {
        hint: text`Commands run as the hub; Hub.allow_managed_services_at_runtime allows them.`,
      });
    }
    const excess = await excessOf(caller, after);
    if (excess.length > 0) {
      const message = text`This service would do more than you may.`;
      throw new HubError('bad_request', message, { ...lacking(excess), isRefusal: true });
    }
    if (after.url === undefined || after.url === before?.definition.url) return;
    const missing = await excessScopes(caller, routingScopes);
    if (missing.length === 0) return;
    // Else the hub would be a way around the server guard of servers and services, which listen there, too.
    throw new HubError('forbidden', text`You may not have the hub send visitors to an address.`, {
      hint: text`That needs access to all servers and services: you lack ${missing.join(', ')}.`,
    });
  }

  /** Who changes who gets into a service, or where its visitors and logins go, could get in by that. */
  async function requireAccess(
    caller: Caller,
    before: RuntimeService | undefined,
    after: RuntimeService,
  ): Promise<void> {
    const fields = changedFields(before, after).filter((field) => !harmlessFields.has(field));
    const isReached = [before, after].some((service) => isReachable(service?.definition));
    if (!isReached || fields.length === 0) return;
    const needed = `access:services${before === undefined ? '' : `!service=${after.definition.name}`}`;
    const [missing] = await excessScopes(caller, [needed]);
    if (missing !== undefined) {
      const message = text`You may not decide who gets into this service, or where its visitors go.`;
      throw new HubError('forbidden', message, {
        hint: text`You lack ${missing}, which this needs: ${fields.join(', ')}.`,
      });
    }
    const groups = before?.definition.rules.flatMap((rule) => rule.groups ?? []);
    for (const group of new Set(groups)) await deps.requireMayOpenTo(caller, group);
  }

  /** Throws for what is wrong with a service beside all others. */
  function requireFits(
    candidate: ServiceToValidate,
    others: readonly RuntimeService[],
    facts: ServiceFacts,
  ): void {
    const services: ServiceToValidate[] = [
      ...deps.configured(),
      ...others.map(({ definition, tokenHash }) => ({ ...definition, tokenHash })),
      candidate,
    ];
    const { directory, hubUrls } = deps;
    const problems = findServiceProblems({ services, directory, hubUrls }, facts)
      .filter(({ index }) => index === services.length - 1)
      .sort((left, right) => Number(left.isTaken) - Number(right.isTaken));
    const [problem] = problems;
    if (problem === undefined) return;
    const code = problem.isTaken ? 'conflict' : 'bad_request';
    throw fieldError(problem.field, problem.message, code);
  }

  function requireSound({ api_token, ...definition }: ServiceConfig): void {
    const name = serviceSchema.shape.name.safeParse(definition.name);
    if (!name.success) {
      throw fieldError('name', issueProblem(name.error.issues[0]));
    }
    const { command, oauth_client_allowed_scopes } = definition;
    if (JSON.stringify(definition).length > maxDefinitionLength) {
      throw new HubError(
        'bad_request',
        text`A service has ${maxDefinitionLength} characters at most.`,
      );
    }
    if (command !== undefined && api_token !== undefined) {
      const message = text`api_token: the hub makes the token of a managed service itself.`;
      throw new HubError('bad_request', message);
    }
    for (const [field, address] of calledAddresses(definition)) {
      if (!isMetadataAddress(new URL(address).hostname)) continue;
      throw fieldError(
        field,
        text`is a link-local or metadata address, where clouds keep credentials`,
      );
    }
    for (const scope of oauth_client_allowed_scopes) {
      const problem = scopeProblem(scope, deps.catalogue);
      if (problem === undefined) continue;
      throw fieldError('oauth_client_allowed_scopes', problem);
    }
  }

  /** Puts a service in the place of `before`, which is still as it was read. */
  async function write(
    caller: Caller,
    before: RuntimeService | undefined,
    name: string,
    { definition: asked, apiToken }: ServiceRequest,
  ): Promise<ServiceOutcome> {
    const definition = withoutUndefined({ name, ...asked });
    const isManaged = definition.command !== undefined;
    const made = isManaged || apiToken !== undefined || before?.tokenHash !== undefined;
    const token = made ? undefined : randomToken();
    const tokenHash = isManaged
      ? undefined
      : apiToken === undefined && token === undefined
        ? before?.tokenHash
        : hashSecret(apiToken ?? token ?? '');
    const service: RuntimeService = { definition, tokenHash };
    if (before !== undefined && versionOfService(before) === versionOfService(service)) {
      return { outcome: 'same', service: before, token: undefined };
    }
    const given = apiToken === undefined ? {} : { api_token: new Secret(apiToken) };
    requireSound({ ...definition, ...given });
    await requireMayMake(caller, before, definition);
    await requireAccess(caller, before, service);
    const facts = await deps.gatherFacts(definition);
    await store.change((services) => {
      const current = services.find((each) => each.definition.name === name);
      requireSame(name, before, current);
      if (before === undefined && services.length >= maxRuntimeServices) {
        throw new HubError(
          'conflict',
          text`There are ${maxRuntimeServices} such services already.`,
        );
      }
      const others = services.filter((each) => each !== current);
      requireFits({ ...definition, ...given, tokenHash }, others, facts);
      return { put: service };
    });
    await deps.refresh();
    return { outcome: before === undefined ? 'created' : 'changed', service, token };
  }

  return {
    find,

    async create(caller, name, request) {
      const isThere = deps.configured().some((service) => service.name === name);
      if (isThere || (await find(name)) !== undefined) {
        throw new HubError('conflict', text`Service ${name} already exists`);
      }
      return write(caller, undefined, name, request);
    },

    async put(caller, name, request, requireVersion) {
      refuseConfigured(name);
      const before = await find(name);
      requireVersion(before && versionOfService(before));
      if (before !== undefined) await requireMayTakeOver(caller, before);
      return write(caller, before, name, request);
    },

    async change(caller, name, edit, requireVersion) {
      const before = await getChangeable(name);
      requireVersion(versionOfService(before));
      await requireMayTakeOver(caller, before);
      return write(caller, before, name, edit(before.definition));
    },

    async delete(caller, name, requireVersion) {
      const before = await getChangeable(name);
      requireVersion(versionOfService(before));
      await requireMayTakeOver(caller, before);
      await store.change((services) => {
        requireSame(
          name,
          before,
          services.find((each) => each.definition.name === name),
        );
        return { remove: [name] };
      });
      await deps.refresh();
    },
  };
}

/**
 * Deletes the services that the configuration has under the same name or client id: what was trusted by that name is
 * not for another one. The log says what they were.
 */
export async function removeShadowedServices(
  configured: readonly ServiceConfig[],
  { store, log }: { readonly store: RuntimeServiceStore; readonly log: Logger },
): Promise<void> {
  const displaced = (services: readonly RuntimeService[]) =>
    services.filter(({ definition }) => isDisplaced(definition, configured));
  if (displaced(await store.list()).length === 0) return;
  let removed: readonly RuntimeService[] = [];
  await store.change((services) => {
    removed = displaced(services);
    return { remove: removed.map(({ definition }) => definition.name) };
  });
  for (const { definition } of removed) {
    const { environment, headers, ...former } = definition;
    log.warn(
      { service: definition.name, former },
      'service added at run time deleted with its token and roles, the configuration has it now',
    );
  }
}

/** By their names in the configuration. */
function changedFields(before: RuntimeService | undefined, after: RuntimeService): string[] {
  const [was, is] = [before, after].map(
    (service) => ({ ...service?.definition }) as Readonly<Record<string, unknown>>,
  );
  const names = Object.keys({ ...was, ...is }).filter(
    (name) => JSON.stringify(was?.[name]) !== JSON.stringify(is?.[name]),
  );
  return before?.tokenHash === after.tokenHash ? names : [...names, 'api_token'];
}

function requireSame(
  name: string,
  before: RuntimeService | undefined,
  current: RuntimeService | undefined,
): void {
  const [was, is] = [before, current].map((service) => service && versionOfService(service));
  if (was === is) return;
  if (before === undefined) throw new HubError('conflict', text`Service ${name} already exists`);
  throw new HubError('conflict', text`Service ${name} has just been changed or deleted.`, {
    hint: text`Read it again before you change it.`,
  });
}

function lacking(scopes: readonly string[]): { hint: string } {
  const listed = [...new Set(scopes)];
  const more = listed.length > 5 ? ' and others' : '';
  return { hint: `You lack ${listed.slice(0, 5).map(quoteScope).join(', ')}${more}.` };
}

/** As it is read back from JSON. */
function withoutUndefined(definition: ServiceConfig): ServiceConfig {
  return JSON.parse(JSON.stringify(definition)) as ServiceConfig;
}
