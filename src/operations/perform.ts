import type { Logger } from 'pino';
import { z } from 'zod';
import type { ActingOnUsers } from '../identity/accounts/acting-on-users.ts';
import {
  type Caller,
  type ListFilter,
  listFilter,
  mayAccess,
  mayAccessServerOf,
  presentsToken,
  type Resource,
  requireAccess,
} from '../identity/rbac/access-check.ts';
import type { Authorizer } from '../identity/rbac/authorizer.ts';
import { emptyMembership, type Membership } from '../identity/rbac/membership.ts';
import type { UserStore } from '../identity/users/user-store.ts';
import { setAttempt } from '../platform/audit/actor.ts';
import type { AuditTarget } from '../platform/audit/audit-event.ts';
import { issueProblem } from '../platform/config/common-schema.ts';
import type { RequireVersion } from '../platform/crypto/version.ts';
import { HubError } from '../platform/errors.ts';
import { joined, type Text, text } from '../platform/texts/text.ts';
import {
  type AnyReply,
  type AnyRequest,
  auditActionsOf,
  type Operation,
  type OperationDeclaration,
  type Page,
  pathParameters,
  resourceOf,
  type Target,
} from './operation.ts';

/** What an entrance hands over: the API a request, a page a form, the command line its arguments. */
export interface Sent {
  readonly params: Readonly<Record<string, string>>;
  /** Finds out who calls; not asked for an operation that is public. The body where it had to be read for that. */
  readonly identify: () => Promise<{
    readonly caller: Caller | undefined;
    readonly body?: unknown;
  }>;
  /** Throws `recent_login_required` for a login that is not recent; asked where the caller presents no token. */
  readonly requireRecentLogin: () => Promise<void>;
  readonly query: Readonly<Record<string, unknown>>;
  /** Read once it is clear that the caller may do this. */
  readonly readBody: (caller: Caller | undefined) => Promise<unknown>;
  /** Throws for what the entrance asks for beside the input; asked once it is clear that the caller may do this. */
  readonly check?: () => void;
  readonly requireVersion: RequireVersion;
  readonly page?: () => Page;
  readonly accepts?: AnyRequest['accepts'];
  readonly presentedToken?: AnyRequest['presentedToken'];
}

/** What was done, and whether its caller may still have what goes on. */
export interface Performed {
  readonly reply: AnyReply;
  /** Whether somebody may perform it, with the same parameters. */
  readonly mayPerform: (caller: Caller | undefined) => Promise<boolean>;
}

/**
 * Performs an operation for a caller: the only place that knows the order of what is asked. Throws `HubError`:
 * `forbidden`, `not_found` where a scope is held but not for the resource, `recent_login_required`,
 * `bad_request` for input that is not as declared, and what the operation throws.
 */
export type Perform<Deps> = (operation: Operation<Deps>, sent: Sent) => Promise<Performed>;

const noParameters = Object.fromEntries(Object.keys(pathParameters).map((name) => [name, '']));
const noPage: Page = { offset: 0, limit: 0 };

export function createPerform<Deps>(
  deps: Deps,
  {
    authorizer,
    users,
    acting,
    log,
  }: {
    readonly authorizer: Pick<Authorizer, 'membershipFor'>;
    readonly users: Pick<UserStore, 'findByName'>;
    readonly acting: Pick<ActingOnUsers, 'requireMayActOn'>;
    readonly log: Logger;
  },
): Perform<Deps> {
  const membershipOf = (caller: Caller | undefined) =>
    caller === undefined ? emptyMembership : authorizer.membershipFor(caller.scopes);

  return async (operation, sent) => {
    const params: AnyRequest['params'] = { ...noParameters, ...sent.params };
    const resource = resourceOf(operation, params);
    setAttempt({
      operation: operation.id,
      action: auditActionsOf(operation)[0],
      target: resource && auditTargetOf(resource),
    });
    const { caller, body: bodySent } = await sent.identify();
    const membership = await membershipOf(caller);
    const rows = authorise(operation, params, caller, membership);
    if (operation.actsOnUser === true && caller !== undefined)
      await requireMayActOn(caller, operation, params);
    if (operation.needsServerToken === true) requireServerToken(params, caller);
    if (operation.needsRecentLogin === true && isByLogin(caller)) await sent.requireRecentLogin();
    sent.check?.();
    const page = sent.page?.() ?? noPage;
    const query = checkQuery(sent.query, operation.query);
    const body =
      operation.body === undefined
        ? undefined
        : checkBody(operation.body, bodySent ?? (await sent.readBody(caller)));
    const { requireVersion, accepts = () => false, presentedToken = () => undefined } = sent;
    const may = createMay(caller, membership);
    const request = {
      params,
      query,
      body,
      caller,
      rows,
      page,
      may,
      requireVersion,
      accepts,
      presentedToken,
    };
    const reply = await operation.handle(request, deps);
    logDone(operation, { resource, caller, reply });
    return {
      reply,
      mayPerform: async (again) =>
        operation.scopes === 'public' ||
        (again !== undefined && isAuthorised(operation, params, again, await membershipOf(again))),
    };
  };

  /** Passes over a user who does not exist. */
  async function requireMayActOn(
    caller: Caller,
    { scopes, target }: OperationDeclaration,
    { name = '', server }: AnyRequest['params'],
  ): Promise<void> {
    const user = await users.findByName(name);
    if (user === undefined || typeof scopes === 'string') return;
    await acting.requireMayActOn(caller, user, scopes, target === 'server' ? server : undefined);
  }

  function logDone(
    { log: declared }: OperationDeclaration,
    done: { resource: Resource | undefined; caller: Caller | undefined; reply: AnyReply },
  ): void {
    const { resource, caller, reply } = done;
    if (declared === undefined || reply.logged === false) return;
    const { level, event } =
      typeof declared === 'string' ? ({ level: 'info', event: declared } as const) : declared;
    log[level](
      { ...(resource && logFieldsOf(resource)), ...reply.logged, by: caller?.owner.name },
      event,
    );
  }
}

/** A caller with the login of a browser, which someone else may have got hold of. */
function isByLogin(caller: Caller | undefined): boolean {
  return caller?.sessionId !== undefined && !presentsToken(caller);
}

function auditTargetOf(resource: Resource): AuditTarget {
  if (resource.kind !== 'server') return resource;
  return { kind: 'server', name: resource.userName, part: resource.serverName };
}

function logFieldsOf(resource: Resource): Readonly<Record<string, string>> {
  if (resource.kind !== 'server') return { [resource.kind]: resource.name };
  return { user: resource.userName, server: resource.serverName };
}

function requireServerToken(params: AnyRequest['params'], caller: Caller | undefined): void {
  const own = caller?.accessToken?.server;
  if (own?.userName === params['name'] && own?.serverName === params['server']) return;
  throw new HubError('forbidden', text`Only the server's own token may do this.`);
}

/** Which filters of a scope pick rows of a list. */
const filtersOf: Readonly<Partial<Record<Target, readonly (keyof ListFilter)[]>>> = {
  users: ['users', 'groups'],
  groups: ['groups'],
  services: ['services'],
};

/**
 * Requires what an operation needs, and tells which rows of a list are shown. Throws `forbidden`, or
 * `not_found` where a scope is held but not for the resource in the path.
 */
export function authorise(
  operation: OperationDeclaration,
  params: Readonly<Record<string, string>>,
  caller: Caller | undefined,
  membership: Membership,
): 'all' | ListFilter {
  const { scopes, target = 'hub' } = operation;
  if (scopes === 'public') return 'all';
  if (caller === undefined) throw missingCredentials();
  if (scopes === 'authenticated') return 'all';
  if (isForOneself(operation, params, caller)) return 'all';
  const filters = filtersOf[target];
  if (filters === undefined) {
    const resource = resourceOf(operation, params);
    const may = createMay(caller, membership);
    if (isForServerOf(resource, operation, caller)) return 'all';
    if (operation.outsideFilter === 'forbidden' && resource !== undefined) {
      if (!scopes.some((scope) => may(scope, resource))) throw outsideFilter();
    } else requireAccess(caller.scopes, scopes, membership, resource);
    return 'all';
  }
  for (const scope of scopes) {
    const rows = listFilter(caller.scopes, scope);
    if (rows === 'all') return 'all';
    if (rows !== undefined && filters.some((filter) => rows[filter].size > 0)) return rows;
  }
  requireAccess(caller.scopes, scopes, membership);
  return 'all';
}

function isForOneself(
  { alwaysForOneself }: OperationDeclaration,
  { name }: Readonly<Record<string, string>>,
  caller: Caller,
): boolean {
  return alwaysForOneself === true && !presentsToken(caller) && caller.user?.name === name;
}

function isForServerOf(
  resource: Resource | undefined,
  { orForServer }: OperationDeclaration,
  { scopes }: Caller,
): boolean {
  if (orForServer === undefined || resource?.kind !== 'user') return false;
  return mayAccessServerOf(scopes, orForServer, resource.name);
}

/** Whether an operation that was authorised is so still. */
export function isAuthorised(...request: Parameters<typeof authorise>): boolean {
  try {
    authorise(...request);
    return true;
  } catch (error) {
    if (error instanceof HubError) return false;
    throw error;
  }
}

/** Whether a caller may perform an operation for more than their own account, which every user may do something with. */
export function reachesOthers({ scopes }: OperationDeclaration, caller: Caller): boolean {
  if (typeof scopes === 'string') return true;
  return scopes.some((scope) => {
    const filter = listFilter(caller.scopes, scope);
    if (filter === undefined || filter === 'all') return filter === 'all';
    return filter.groups.size > 0 || [...filter.users].some((name) => name !== caller.owner.name);
  });
}

/** Whether a caller holds a scope for a resource. */
export function createMay(caller: Caller | undefined, membership: Membership) {
  return (scope: string, resource?: Resource): boolean =>
    caller !== undefined && mayAccess(caller.scopes, scope, resource, membership);
}

/** The refusal where a resource that is not there is no other than one that is not the caller's. */
export function outsideFilter(): HubError {
  return new HubError('forbidden', text`You may not do this, or there is no such resource.`);
}

/** The refusal of a request without a known caller. */
export function missingCredentials(): HubError {
  return new HubError('forbidden', text`Missing or invalid credentials.`, {
    hint: text`Send a valid token as "Authorization: token <API token>".`,
  });
}

const empty = z.object({});

/** Reads a query as an operation declares it; what is not declared is passed over. */
export function checkQuery(
  query: Readonly<Record<string, unknown>>,
  schema: z.ZodObject = empty,
): Record<string, unknown> {
  return parse(schema, query, (problems) => text`Invalid query: ${problems}.`) as Record<
    string,
    unknown
  >;
}

/** Reads a body as an operation declares it; every problem is named in one `bad_request`. */
export function checkBody<Schema extends z.ZodType>(
  schema: Schema,
  body: unknown,
): z.output<Schema> {
  if (body === undefined && !isOptional(schema)) {
    throw new HubError('bad_request', text`This request needs a JSON body.`);
  }
  return parse(
    schema,
    body,
    (problems) => text`Invalid request body: ${problems}.`,
  ) as z.output<Schema>;
}

/** Whether a request may leave the body out. */
export function isOptional(schema: z.ZodType): boolean {
  return schema.safeParse(undefined).success;
}

function parse(schema: z.ZodType, value: unknown, invalid: (problems: Text) => Text): unknown {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const fields = result.error.issues.map((issue) => ({
    name: issue.path.join('.'),
    problem: issueProblem(issue) ?? issue.message,
  }));
  const problems = fields.map(({ name, problem }) =>
    name === '' ? problem : text`${name}: ${problem}`,
  );
  const [field, ...others] = fields;
  const isOne = field !== undefined && others.length === 0;
  throw new HubError('bad_request', invalid(joined(problems, '; ')), isOne ? { field } : {});
}
