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
import type { Perform } from '../../operations/perform.ts';
import type { Authorizer } from '../../rbac/authorizer.ts';
import type { Caller } from '../../rbac/caller.ts';
import type { Membership } from '../../rbac/membership.ts';
import { requireAccess } from '../../rbac/require-access.ts';
import type { Login } from '../../sessions/login-sessions.ts';
import type { Language } from '../../texts/language.ts';
import type { Phrase, Text } from '../../texts/text.ts';
import { adminLink, openedBy } from '../elements/admin-link.ts';
import { actorOf } from '../elements/audit-table.ts';
import type { FormLayoutProps, PageNotice } from '../elements/layout-props.ts';
import { Html, html } from '../html.ts';
import type { ConfirmLogin } from '../login/confirm-login.ts';
import type { PageContext } from '../page-context.ts';
import { withHint } from '../problem-of.ts';

/** A page or form, and the operation that it performs. */
export interface Entrance {
  readonly kind: 'page' | 'form';
  /** Below `/hub`; parameters stand in it as `{name}`. */
  readonly path: string;
  readonly operation: OperationDeclaration;
  /** Scope that it needs as well. */
  readonly areaScope: string | undefined;
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
}

/** Shows a page again with what was typed into a form of it. */
export type ShowAgain = (ctx: Context, visitor: Visitor, failure: Failure) => Promise<void>;

/** Where the browser goes, and what it says there; or what it shows at once, as it is shown this once. */
type Next =
  | { readonly to: string; readonly say: Text; readonly kind?: PageNotice['kind'] }
  | { readonly redirect: string }
  | { readonly show: (layout: FormLayoutProps) => Html };

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

  /** Who did it last, as far as the visitor may read that. */
  async function lastActor(
    { caller, membership }: Visitor,
    changes: Changes | undefined,
  ): Promise<Html | undefined> {
    const operation = operationOf('viewLastChange');
    if (changes === undefined || !isAuthorised(operation, {}, caller, membership)) return undefined;
    const { reply } = await perform(operation, {
      params: {},
      identify: async () => ({ caller }),
      query: { ...changes },
      ...unconditional,
    });
    const latest = reply.body as ModelOf<'viewLastChange'>;
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
    const { reply } = await perform(operationOf(id), {
      params,
      identify: async () => ({ caller: visitor.caller }),
      query: ctx.query,
      ...unconditional,
      requireRecentLogin: () => confirmLogin.require(ctx),
    });
    const answer = await show({
      layout: await pages.formLayoutFor(ctx),
      model: reply.body as ModelOf<Id>,
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

  async function goTo(ctx: Context, next: Next | Html): Promise<void> {
    if (next instanceof Html) return pages.send(ctx, next);
    if ('show' in next) return pages.send(ctx, next.show(await pages.formLayoutFor(ctx)));
    if ('redirect' in next) {
      ctx.redirect(next.redirect);
      ctx.status = 303;
      return;
    }
    const { to, say, kind = 'good' } = next;
    pages.redirectWithNotice(ctx, to, { kind, text: say });
  }

  const koaPath = (path: string) => path.replaceAll(/\{(\w+)\}/g, ':$1');

  return {
    pages,

    page(path, id, show, options) {
      deps.entrances.push({ kind: 'page', path, operation: operationOf(id), areaScope });
      router.get(
        koaPath(path),
        pages.loggedIn(async (ctx, login) => {
          try {
            await respond(ctx, await visitorOf(login), { id, show, options });
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
            await goTo(ctx, await done({ params, sent, result, ctx, visitor }));
          } catch (error) {
            if (!(error instanceof HubError)) throw error;
            if (error.code === 'not_found' && !error.isRefusal && options.isGone !== undefined)
              return await goTo(ctx, options.isGone(sent, params));
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
            if (mistaken !== undefined) return await goTo(ctx, mistaken(problem, sent));
            if (again === undefined) throw error;
            if (error.retryAfterSeconds !== undefined)
              ctx.set('Retry-After', String(error.retryAfterSeconds));
            const field = error.details?.['field'] as string | undefined;
            return again(ctx, visitor, { path, sent, problem, field, status });
          }
        }),
      );
    },
  };
}
