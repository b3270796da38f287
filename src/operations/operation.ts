import { z } from 'zod';
import type { Caller, ListFilter, Resource } from '../identity/rbac/access-check.ts';
import type { AuditAction } from '../platform/audit/actions.ts';
import type { RequireVersion } from '../platform/crypto/version.ts';
import type { JsonText } from '../platform/protocol/json-text.ts';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** Every parameter that occurs in a path, by its name there. */
export const pathParameters = {
  name: z.string().describe('Name of the user.'),
  server: z.string().describe('Name of the server.'),
  owner: z.string().describe('Name of the user whose server it is.'),
  group: z.string().describe('Name of the group.'),
  role: z.string().describe('Name of the role.'),
  service: z.string().describe('Name of the service.'),
  id: z.string().describe('Id, as the list tells it.'),
  batch: z.string().describe('Id of work for many users.'),
  budget: z.string().describe('Name of the budget.'),
  key: z.string().describe('Id of a key that signs ID tokens.'),
  entry: z.string().describe('Id of an entry of the audit log.'),
  token: z.string().describe('A token.'),
  cookie: z.string().describe('Name of a cookie.'),
  value: z.string().describe('Value of the cookie.'),
} as const satisfies Readonly<Record<string, z.ZodString>>;

/** What the operations are about, in the order of the description. */
export const tags = {
  hub: 'The hub itself: what it is, how it does, what it is told to do.',
  users: 'People who may log in, and what is known of them.',
  tokens: 'API tokens of users.',
  sessions: 'Logins in browsers.',
  logins: 'Second factors, links and lock-outs of users.',
  servers: 'Servers of users: starting, watching, stopping.',
  services: 'Shared services, of the configuration or added while the hub runs.',
  shares: 'Access to servers that their owners give to others.',
  groups: 'Groups of users.',
  roles: 'Named sets of scopes, and who has them.',
  oauth: 'The OAuth 2 endpoints for apps (RFC 6749, 7009, 7662).',
} as const;

type PathParameter = keyof typeof pathParameters;

/**
 * What a scope must be held for. One resource, named by the parameters of the path: without it the
 * answer is 404. `hub`: the whole hub, so that a scope with a filter is not enough (403). A list: a
 * scope with a filter shortens it.
 */
export type Target = 'hub' | Resource['kind'] | 'users' | 'groups' | 'services';

/** One answer of an operation. */
export interface AnswerDeclaration {
  readonly description: string;
  readonly schema?: z.ZodType;
  /** JSON unless given; of an event stream, `schema` describes one event. */
  readonly mediaType?: string;
  /** Further media types that clients ask for in `Accept`. */
  readonly others?: {
    readonly 'text/plain'?: z.ZodType;
    /** Of one event. */
    readonly 'text/event-stream'?: z.ZodType;
  };
}

/** Everything there is to say about one operation. Router, checks, description and tests follow from it. */
export interface OperationDeclaration {
  readonly id: string;
  /**
   * `page`, `command`: performed by pages or commands of the hub only, so neither in the API nor in its description;
   * `program`: in the API, but not described, since only gateways and command lines of the same version ask it.
   */
  readonly audience?: 'page' | 'command' | 'program';
  /** Whether commands perform it too; `by_running_hub`: only while one runs. */
  readonly byCommand?: true | 'by_running_hub';
  readonly method: Method;
  /** Below `/hub/api`; parameters stand in it as `{name}`. */
  readonly path: `/${string}`;
  /** Further paths of the same operation; a parameter that they leave out is empty. */
  readonly aliases?: readonly `/${string}`[];
  /** `internal` for what is not described. */
  readonly tag: keyof typeof tags | 'internal';
  readonly summary: string;
  readonly description?: string;
  /** Any of these admits. `public` needs no credentials, `authenticated` takes any. */
  readonly scopes: 'public' | 'authenticated' | readonly string[];
  /** The whole hub, unless given. */
  readonly target?: Target;
  /** A scope that admits as well where it is held for any server of the user in the path. */
  readonly orForServer?: string;
  /** Whether it changes something of the user in the path: no caller acts so on one who may do more. */
  readonly actsOnUser?: true;
  /** Whether it takes only the token that the server in the path was started with. */
  readonly needsServerToken?: true;
  /** Whether users may do it to themselves when logged in with a browser, whatever their roles say. */
  readonly alwaysForOneself?: true;
  /** Whether what it does outlives a login: with a login cookie it needs a recent one. */
  readonly needsRecentLogin?: true;
  /** Whether programs without a token may say by name and password who they are: `auth` in the body. */
  readonly takesPassword?: true;
  /** What a caller gets whose right is not one to this resource: 404, as for one that is not there. */
  readonly outsideFilter?: 'forbidden';
  /** Whether its answers carry the version of the resource as `ETag`, and `If-Match` makes a change conditional. */
  readonly isVersioned?: true;
  readonly query?: z.ZodObject;
  /**
   * Whether the list comes in pages, with `offset` and `limit` in the query; `in_envelope`: always with the envelope
   * that clients ask for in `Accept` elsewhere. The schema is that of the items.
   */
  readonly isPaged?: true | 'in_envelope';
  /** A schema that takes `undefined` makes the body optional. */
  readonly body?: z.ZodType;
  /** JSON unless given. */
  readonly bodyMediaType?: 'application/x-www-form-urlencoded';
  readonly answers: Readonly<Record<number, AnswerDeclaration>>;
  /** What it is in the audit log. */
  readonly audit?: AuditDeclaration;
  /** The event in the log once it is done, with whom it was done to and by whom. */
  readonly log?: LogDeclaration;
}

/** An event that a person can search the log for, such as `user deleted`. */
export type LogDeclaration = string | { readonly level: 'warn'; readonly event: string };

/**
 * The actions that an operation does, the first being what a refusal is recorded as; or why what it does is
 * not recorded.
 */
export type AuditDeclaration = readonly [AuditAction, ...AuditAction[]] | { readonly none: string };

/** Part of a list: `limit` is within the bounds of the hub. */
export interface Page {
  readonly offset: number;
  readonly limit: number;
}

/** What a handler gets: everything parsed, and the caller found to be allowed. */
export interface OperationRequest<Declaration extends OperationDeclaration> {
  readonly params: Readonly<Record<ParameterOf<Declaration['path']>, string>>;
  readonly query: Declaration['query'] extends z.ZodType ? z.output<Declaration['query']> : unknown;
  readonly body: Declaration['body'] extends z.ZodType ? z.output<Declaration['body']> : unknown;
  readonly caller: Declaration['scopes'] extends 'public' ? undefined : Caller;
  /** Which rows of a list the caller may see. */
  readonly rows: 'all' | ListFilter;
  readonly page: Page;
  /** By `If-Match`. */
  readonly requireVersion: RequireVersion;
  /** Whether the caller holds a scope for something; decides what an answer shows. */
  readonly may: (scope: string, resource?: Resource) => boolean;
  /** Which of some media types the client would like best, the first of equals; false for none of them. */
  readonly accepts: (...types: string[]) => string | false;
  /** The token that the client sent, for the one answer that has to give it back (RFC 7592 §3). */
  readonly presentedToken: () => string | undefined;
}

/** What a handler returns: one of the answers declared. */
type Reply<Declaration extends OperationDeclaration> = {
  [Status in keyof Declaration['answers'] & number]: ReplyOptions & {
    readonly status: Status;
  } & Content<Declaration['answers'][Status], Declaration['isPaged']>;
}[keyof Declaration['answers'] & number];

/** The same at once or later; nothing where 204 is the only answer and there is no more to say. */
type Answered<Declaration extends OperationDeclaration> =
  | Reply<Declaration>
  | Promise<Reply<Declaration>>
  | (keyof Declaration['answers'] extends 204 ? Promise<void> : never);

interface ReplyOptions {
  /** Further fields of the line in the log; false for none, where nothing was changed. */
  readonly logged?: Readonly<Record<string, string | number | boolean>> | false;
  /** Version of the resource that the answer shows. */
  readonly version?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Called when the answer has been sent, or the client has gone. */
  readonly onSent?: () => void;
}

/** An operation and what it does. */
export type Operation<
  Deps,
  Declaration extends OperationDeclaration = OperationDeclaration,
> = Declaration & {
  readonly handle: (
    request: AnyRequest,
    deps: Deps,
  ) => Promise<OperationDeclaration extends Declaration ? AnyReply : Reply<Declaration>>;
};

/** A request as the router hands it over. */
export type AnyRequest = Omit<OperationRequest<OperationDeclaration>, 'caller' | 'params'> & {
  readonly caller: Caller | undefined;
  readonly params: Readonly<Record<string, string>>;
};

/** An answer as the router writes it. */
export interface AnyReply extends ReplyOptions {
  readonly status: number;
  readonly body?: unknown;
  readonly text?: string;
  readonly items?: unknown;
  readonly total?: number;
  readonly events?: (signal: AbortSignal) => AsyncIterable<unknown>;
}

/** Declares an operation; the handler that follows is checked against the declaration. */
export function operation<const Declaration extends OperationDeclaration>(
  declaration: Declaration & AuditDemand<Declaration>,
): {
  handle: <Deps>(
    handler: (request: OperationRequest<Declaration>, deps: Deps) => Answered<Declaration>,
  ) => Operation<Deps, Declaration>;
} {
  return {
    handle<Deps>(handler: unknown) {
      const untyped = handler as (
        request: AnyRequest,
        deps: Deps,
      ) => Promise<Reply<Declaration> | undefined>;
      return {
        ...(declaration as Declaration),
        handle: async (request: AnyRequest, deps: Deps) =>
          (await untyped(request, deps)) ?? ({ status: 204 } as Reply<Declaration>),
      };
    },
  };
}

/** What a page or command shows: an operation that is no part of the API, and answers with its model as it is. */
export type View<Deps, Declaration extends ViewDeclaration, Model> = OperationDeclaration &
  Declaration & {
    readonly audience: 'page' | 'command';
    readonly handle: (
      request: AnyRequest,
      deps: Deps,
    ) => Promise<{ readonly status: 200; readonly body: Model }>;
  };

type ViewDeclaration = Pick<
  OperationDeclaration,
  | 'id'
  | 'audience'
  | 'byCommand'
  | 'path'
  | 'scopes'
  | 'target'
  | 'actsOnUser'
  | 'orForServer'
  | 'outsideFilter'
  | 'needsRecentLogin'
  | 'query'
>;

/** Declares what a page or command reads; its path is that of the page. */
export function view<const Declaration extends ViewDeclaration>(
  declaration: Declaration,
): {
  handle: <Deps, Model>(
    handler: (
      request: OperationRequest<OperationDeclaration & Declaration>,
      deps: Deps,
    ) => Model | Promise<Model>,
  ) => View<Deps, Declaration, Model>;
} {
  return {
    handle(handler) {
      const untyped = handler as unknown as (
        request: AnyRequest,
        deps: unknown,
      ) => Awaited<ReturnType<typeof handler>>;
      return {
        audience: 'page',
        ...declaration,
        method: 'GET',
        tag: 'internal',
        summary: declaration.id,
        answers: { 200: { description: 'What the page shows.' } },
        handle: async (request: AnyRequest, deps: unknown) => ({
          status: 200,
          body: await untyped(request, deps),
        }),
      };
    },
  };
}

/** What changes something says what it is in the audit log. */
type AuditDemand<Declaration extends OperationDeclaration> = Declaration['method'] extends 'GET'
  ? unknown
  : { readonly audit: AuditDeclaration };

/** The actions of an operation in the audit log. */
export function auditActionsOf({
  audit = { none: '' },
}: Pick<OperationDeclaration, 'audit'>): readonly AuditAction[] {
  return 'none' in audit ? [] : audit;
}

/** The resource that an operation touches, by the parameters of its path; undefined for no single one. */
export function resourceOf(
  { target = 'hub' }: Pick<OperationDeclaration, 'target'>,
  params: Readonly<Partial<Record<PathParameter, string>>>,
): Resource | undefined {
  const { name = '', server = '', group = '', service = '' } = params;
  switch (target) {
    case 'user':
      return { kind: 'user', name };
    case 'server':
      return { kind: 'server', userName: name, serverName: server };
    case 'group':
      return { kind: 'group', name: group };
    case 'service':
      return { kind: 'service', name: service };
    case 'hub':
    case 'users':
    case 'groups':
    case 'services':
      return undefined;
  }
}

/** Names of the parameters in a path. */
export function parameterNames(path: string): PathParameter[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name as PathParameter);
}

type ParameterOf<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? Name | ParameterOf<Rest>
  : never;

type Content<Answer extends AnswerDeclaration, IsPaged> = Answer['schema'] extends z.ZodType
  ? Answer['mediaType'] extends 'text/event-stream'
    ? { readonly events: (signal: AbortSignal) => AsyncIterable<ModelOf<Answer['schema']>> }
    : IsPaged extends true | 'in_envelope'
      ? {
          readonly items: ModelOf<Answer['schema']> | JsonText<ModelOf<Answer['schema']>>;
          readonly total: number;
        }
      :
          | { readonly body: ModelOf<Answer['schema']> | JsonText<ModelOf<Answer['schema']>> }
          | OtherContent<Answer['others']>
  : { readonly body?: undefined };

type OtherContent<Others> =
  | (Others extends { readonly 'text/plain': z.ZodType } ? { readonly text: string } : never)
  | (Others extends { readonly 'text/event-stream': infer Event extends z.ZodType }
      ? { readonly events: (signal: AbortSignal) => AsyncIterable<ModelOf<Event>> }
      : never);

/** What a schema describes, as handlers return it. */
export type ModelOf<Schema extends z.ZodType> = DeepReadonly<z.input<Schema>>;

type DeepReadonly<Value> = Value extends (infer Item)[]
  ? readonly DeepReadonly<Item>[]
  : Value extends object
    ? { readonly [Key in keyof Value]: DeepReadonly<Value[Key]> }
    : Value;
