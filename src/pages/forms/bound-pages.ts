import type Router from '@koa/router';
import type { Context } from 'koa';
import type { z } from 'zod';
import type { AuditAction } from '../../audit/actions.ts';
import { anyVersion, oneOfVersions } from '../../crypto/version.ts';
import { HubError, type HubErrorCode } from '../../errors.ts';
import { isAuthorised } from '../../operations/authorise.ts';
import type { JsonText, OperationDeclaration } from '../../operations/operation.ts';
import {
  type OperationDeps,
  type OperationId,
  type OperationOf,
  operationOf,
} from '../../operations/operations.ts';
import type { Perform, Sent } from '../../operations/perform.ts';
import type { Authorizer } from '../../rbac/authorizer.ts';
import type { Caller } from '../../rbac/caller.ts';
import type { Membership } from '../../rbac/membership.ts';
import { requireAccess } from '../../rbac/require-access.ts';
import type { Login, LoginSessions } from '../../sessions/login-sessions.ts';
import type { Language } from '../../texts/language.ts';
import { type Phrase, type Text, text } from '../../texts/text.ts';
import { adminLink, openedBy } from '../elements/admin-link.ts';
import { actorOf } from '../elements/audit-table.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { Html, html } from '../html.ts';
import type { ConfirmLogin } from '../login/confirm-login.ts';
import type { PageContext } from '../page-context.ts';
import { withHint } from '../problem-of.ts';
import { goTo, type Next } from './next.ts';

/** A page or form, and the operation that it performs. */
export interface Entrance {
  readonly kind: 'page' | 'form';
  /** Below `/hub`; parameters stand in it as `{name}`. */
  readonly path: string;
  readonly operation: OperationDeclaration;
  /** Scope that it needs as well. */
  readonly areaScope: string | undefined;
  /** What is sent to a form that performs one of several operations, to choose this one. */
  readonly fields?: Readonly<Record<string, string>>;
  /** Whether those who may not see the page are led to one that they may see. */
  readonly leadsOn?: true;
}

/** Who looks at a page. */
export interface Visitor {
  readonly login: Login;
  readonly caller: Caller;
  readonly membership: Membership;
}

/** Why a form is shown again. */
export interface Failure {
  /** Of the form, as it was bound. */
  readonly path: string;
  /** What was sent. */
  readonly sent: URLSearchParams;
  /** What is wrong with it, unless it was not finished. */
  readonly problem?: Phrase;
  /** The name of the field that it is about, where the operation says so. */
  readonly field?: string | undefined;
  readonly status?: number;
  /** Whether somebody has changed meanwhile what it is about; who, as far as the visitor may know. */
  readonly changed?: { readonly by: Html | undefined };
}

type Parameters = Readonly<Record<string, string>>;
/** What an operation answers. */
export type ModelOf<Id extends OperationId> = Exclude<
  Extract<Awaited<ReturnType<OperationOf<Id>['handle']>>, { readonly body: unknown }>['body'],
  JsonText<never>
>;
type BodyOf<Id extends OperationId> =
  OperationOf<Id> extends { readonly body: infer Schema }
    ? Schema extends z.ZodType
      ? z.input<Schema>
      : undefined
    : undefined;

/** What a page is drawn from. */
export interface Shown<Model> {
  readonly layout: FormLayoutProps;
  /** What the operation of the page answered. */
  readonly model: Model;
  readonly params: Parameters;
  /** Query of the address. */
  readonly search: URLSearchParams;
  readonly language: Language;
  readonly visitor: Visitor;
  /** Whether the visitor may perform an operation; with parameters beside those of the page. */
  readonly may: (id: OperationId, params?: Parameters) => boolean;
  /** For a form that is shown again. */
  readonly failure: Failure | undefined;
  /** For what waits in the session of the browser. */
  readonly ctx: Context;
}

/** A page, or where the browser is sent in its place; undefined where the page has answered by itself. */
type Answer = Html | { readonly redirect: string } | undefined;

interface PageOptions<AgainId extends OperationId = OperationId> {
  /** The operation that is read where the page is shown again. */
  readonly againId?: AgainId;
  /** Parameters of the operation that do not stand in the path. */
  readonly params?: (visitor: Visitor, ctx: Context) => Parameters | Promise<Parameters>;
  /** Where those are led who may not see it; undefined refuses them. */
  readonly otherwise?: (visitor: Visitor) => string | undefined;
}

/** Shows a page again with what was typed into a form of it. */
export type ShowAgain = (ctx: Context, visitor: Visitor, failure: Failure) => Promise<void>;

export interface Changes {
  readonly actions: readonly AuditAction[];
  readonly target?: string | undefined;
}

interface FormOptions<Id extends OperationId> {
  /** Parameters of the operation that stand in the form and not in the path. */
  readonly params?: (sent: URLSearchParams, visitor: Visitor) => Parameters;
  /** What the operation is asked with. Throws `bad_request` for what was typed and is no value. */
  readonly body?: (
    sent: URLSearchParams,
    params: Parameters,
    ctx: Context,
  ) => BodyOf<Id> | Promise<BodyOf<Id>>;
  readonly query?: (sent: URLSearchParams) => Readonly<Record<string, string>>;
  /** What the next page says, and its address; or a page that is shown this once. */
  readonly done: (performed: Performed<Id>) => Next | Html | Promise<Next | Html>;
  /** The actions that make another version of what it changes, and its name, to say who did. */
  readonly changes?: (params: Parameters) => Changes;
  /** What is said in place of 404 where it is gone already, and was only to be ended. */
  readonly isGone?: (sent: URLSearchParams, params: Parameters) => Next;
  /** Throws `bad_request` where a question of the form was not answered as it must be. */
  readonly check?: (sent: URLSearchParams, params: Parameters) => void;
  /** Whether a button asks for no more than the page again, with what was typed so far. */
  readonly isUnfinished?: (sent: URLSearchParams) => boolean;
  /** The page on which mistakes are shown; without it, they are shown as an error. */
  readonly again?: ShowAgain;
  /** Where the browser goes with a mistake in a form that stands on several pages. */
  readonly mistaken?: (problem: Text, sent: URLSearchParams) => Next;
}

interface Performed<Id extends OperationId> {
  readonly params: Parameters;
  readonly sent: URLSearchParams;
  /** What the operation answered. */
  readonly result: ModelOf<Id>;
  readonly ctx: Context;
  readonly visitor: Visitor;
}

/** A form that says in one of its fields which operation is performed. */
interface Choice {
  readonly field: string;
  /** By what stands in the field. */
  readonly operations: Readonly<Record<string, OperationId>>;
  readonly logins: Pick<LoginSessions, 'find'>;
  readonly act: (chosen: Chosen) => Promise<Next>;
}

/** What was chosen in a form. */
export interface Chosen {
  /** What stood in the field. */
  readonly choice: string;
  readonly sent: URLSearchParams;
  readonly visitor: Visitor;
  readonly language: Language;
  /** What a view answers the visitor. */
  readonly read: <Id extends OperationId>(
    id: Id,
    asked: { readonly params?: Parameters; readonly query?: Parameters },
  ) => Promise<ModelOf<Id>>;
  /**
   * Performs the chosen operation, also long after the request: with the rights that the visitor has by then, and no
   * more once the login has ended.
   */
  readonly perform: (asked: {
    readonly params: Parameters;
    readonly body?: unknown;
  }) => Promise<unknown>;
}

/** Binds addresses of pages to operations, which alone decide who may and what is done. */
export interface BoundPages {
  readonly pages: PageContext;
  /** A page that shows what an operation reads, or another one where it is shown again; returns how to do that. */
  page<Id extends OperationId, AgainId extends OperationId = Id>(
    path: string,
    id: Id,
    show: (shown: Shown<ModelOf<Id | AgainId>>) => Answer | Promise<Answer>,
    options?: PageOptions<AgainId>,
  ): ShowAgain;
  /** A form that performs an operation. */
  form<Id extends OperationId>(path: string, id: Id, options: FormOptions<Id>): void;
  /** A form that performs one of several operations, once or for many. */
  choice(path: string, options: Choice): void;
}

/** What is read. */
const unconditional = {
  requireRecentLogin: async () => undefined,
  readBody: async () => undefined,
  requireVersion: anyVersion,
};

/** What is said on the page of the form, and its status there. */
const mistakes: Readonly<Partial<Record<HubErrorCode, number>>> = {
  bad_request: 400,
  conflict: 400,
  forbidden: 403,
  too_many_requests: 429,
};

export function createBoundPages(
  router: Router,
  deps: {
    readonly pages: PageContext;
    readonly perform: Perform<OperationDeps>;
    readonly authorizer: Authorizer;
    readonly confirmLogin: Pick<ConfirmLogin, 'readForm' | 'require'>;
    /** Scope that every one of the pages needs beside what its operation does. */
    readonly areaScope?: string;
    /** Where each page and form is noted. */
    readonly entrances: Entrance[];
  },
): BoundPages {
  const { pages, perform, authorizer, confirmLogin, areaScope } = deps;

  async function visitorOf(login: Login): Promise<Visitor> {
    const caller = await pages.callerOf(login);
    const membership = await authorizer.membershipFor(caller.scopes);
    if (areaScope !== undefined) requireAccess(caller.scopes, [areaScope], membership);
    return { login, caller, membership };
  }

  async function read<Id extends OperationId>(
    id: Id,
    { caller }: Pick<Visitor, 'caller'>,
    asked: Partial<Sent>,
  ): Promise<ModelOf<Id>> {
    const { reply } = await perform(operationOf(id), {
      params: {},
      query: {},
      identify: async () => ({ caller }),
      ...unconditional,
      ...asked,
    });
    return reply.body as ModelOf<Id>;
  }

  /** Who did it last, as far as the visitor may read that. */
  async function lastActor(
    { caller, membership }: Visitor,
    changes: Changes | undefined,
  ): Promise<Html | undefined> {
    const operation = operationOf('viewLastChange');
    if (changes === undefined || !isAuthorised(operation, {}, caller, membership)) return undefined;
    const latest = await read('viewLastChange', { caller }, { query: { ...changes } });
    const mayOpen = openedBy(caller, membership);
    return (
      latest && html`${actorOf(latest, (name) => adminLink({ ...pages, mayOpen }, 'user', name))}`
    );
  }

  const paramsOf = (ctx: Context): Parameters => ctx['params'] as Parameters;

  async function respond<Id extends OperationId>(
    ctx: Context,
    visitor: Visitor,
    {
      id,
      show,
      options,
      failure,
    }: {
      readonly id: Id;
      readonly options: PageOptions | undefined;
      readonly show: (shown: Shown<ModelOf<Id>>) => Answer | Promise<Answer>;
      readonly failure?: Failure;
    },
  ): Promise<void> {
    const params = { ...paramsOf(ctx), ...(await options?.params?.(visitor, ctx)) };
    const model = await read(id, visitor, {
      params,
      query: ctx.query,
      requireRecentLogin: () => confirmLogin.require(ctx),
    });
    const answer = await show({
      layout: await pages.formLayoutFor(ctx),
      model,
      params,
      search: new URLSearchParams(ctx.querystring),
      language: pages.languageOf(ctx),
      visitor,
      may: (asked, more) =>
        isAuthorised(
          operationOf(asked),
          { ...params, ...more },
          visitor.caller,
          visitor.membership,
        ),
      failure,
      ctx,
    });
    if (answer instanceof Html) pages.send(ctx, answer, failure?.status ?? 200);
    else if (answer !== undefined) ctx.redirect(answer.redirect);
  }

  const koaPath = (path: string) => path.replaceAll(/\{(\w+)\}/g, ':$1');

  return {
    pages,

    page(path, id, show, options) {
      const operation = operationOf(id);
      const otherwise = options?.otherwise;
      const leadsOn = otherwise && { leadsOn: true as const };
      deps.entrances.push({ kind: 'page', path, operation, areaScope, ...leadsOn });
      router.get(
        koaPath(path),
        pages.loggedIn(async (ctx, login) => {
          const visitor = await visitorOf(login);
          const { caller, membership } = visitor;
          const isOpen = !otherwise || isAuthorised(operation, paramsOf(ctx), caller, membership);
          const elsewhere = isOpen ? undefined : otherwise(visitor);
          if (elsewhere !== undefined) return ctx.redirect(elsewhere);
          try {
            await respond(ctx, visitor, { id, show, options });
          } catch (error) {
            if (!(error instanceof HubError) || error.code !== 'recent_login_required') throw error;
            ctx.redirect(pages.urls.confirmLogin(pages.ownPathOf(ctx.originalUrl)));
          }
        }),
      );
      const shown = { id: options?.againId ?? id, show, options };
      return (ctx, visitor, failure) => respond(ctx, visitor, { ...shown, failure });
    },

    form(path, id, options) {
      const operation = operationOf(id);
      const { again, mistaken, done } = options;
      deps.entrances.push({ kind: 'form', path, operation, areaScope });
      router.post(
        koaPath(path),
        pages.loggedIn(async (ctx, login) => {
          const visitor = await visitorOf(login);
          const sent = await confirmLogin.readForm(
            ctx,
            login,
            () => operation.needsRecentLogin === true,
          );
          if (sent === undefined) return;
          if (options.isUnfinished?.(sent)) return again?.(ctx, visitor, { path, sent });
          const params = { ...paramsOf(ctx), ...options.params?.(sent, visitor) };
          const version = sent.get('version');
          try {
            const { reply } = await perform(operation, {
              params,
              identify: async () => ({ caller: visitor.caller }),
              requireRecentLogin: () => confirmLogin.require(ctx),
              check: () => options.check?.(sent, params),
              query: options.query?.(sent) ?? {},
              readBody: async () => options.body?.(sent, params, ctx),
              requireVersion: version === null ? anyVersion : oneOfVersions([version]),
            });
            const result = reply.body as ModelOf<typeof id>;
            await goTo(pages, ctx, await done({ params, sent, result, ctx, visitor }));
          } catch (error) {
            if (!(error instanceof HubError)) throw error;
            if (error.code === 'not_found' && !error.isRefusal && options.isGone !== undefined)
              return await goTo(pages, ctx, options.isGone(sent, params));
            if (error.code === 'precondition_failed' && again !== undefined) {
              const by = await lastActor(visitor, options.changes?.(params));
              return again(ctx, visitor, { path, sent, changed: { by }, status: 400 });
            }
            const { caller, membership } = visitor;
            // What a visitor may not do at all is no mistake in the form.
            const status = mistakes[error.code];
            if (status === undefined || !isAuthorised(operation, params, caller, membership))
              throw error;
            const problem = withHint(error);
            if (mistaken !== undefined) return await goTo(pages, ctx, mistaken(problem, sent));
            if (again === undefined) throw error;
            if (error.retryAfterSeconds !== undefined)
              ctx.set('Retry-After', String(error.retryAfterSeconds));
            const field = error.details?.['field'] as string | undefined;
            return again(ctx, visitor, { path, sent, problem, field, status });
          }
        }),
      );
    },

    choice(path, { field, operations, logins, act }) {
      for (const [chosen, id] of Object.entries(operations)) {
        const fields = { [field]: chosen };
        deps.entrances.push({ kind: 'form', path, operation: operationOf(id), areaScope, fields });
      }
      const byName = new Map(Object.entries(operations));
      router.post(
        koaPath(path),
        pages.loggedIn(async (ctx, login) => {
          const visitor = await visitorOf(login);
          const chosenIn = (sent: URLSearchParams) => byName.get(sent.get(field) ?? '');
          const sent = await confirmLogin.readForm(ctx, login, (form) => {
            const id = chosenIn(form);
            return id !== undefined && operationOf(id).needsRecentLogin === true;
          });
          if (sent === undefined) return;
          const id = chosenIn(sent);
          if (id === undefined) throw new HubError('bad_request', text`There is no such action.`);
          const next = await act({
            choice: sent.get(field) ?? '',
            sent,
            visitor,
            language: pages.languageOf(ctx),
            read: (asked, more) => read(asked, visitor, more),
            async perform({ params, body }) {
              const current = await logins.find(login.session.sessionId);
              if (current === undefined)
                throw new HubError('forbidden', text`You are no longer logged in.`);
              return read(id, await visitorOf(current), { params, readBody: async () => body });
            },
          });
          await goTo(pages, ctx, next);
        }),
      );
    },
  };
}
