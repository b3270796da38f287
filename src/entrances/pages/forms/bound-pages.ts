import type Router from '@koa/router';
import type { Context } from 'koa';
import { requireAccess } from '../../../identity/rbac/access-check.ts';
import type { Authorizer } from '../../../identity/rbac/authorizer.ts';
import type { Login } from '../../../identity/sessions/login-sessions.ts';
import {
  type OperationDeps,
  type OperationId,
  operationOf,
} from '../../../operations/operations.ts';
import { isAuthorised, type Perform, type Sent } from '../../../operations/perform.ts';
import { anyVersion, oneOfVersions } from '../../../platform/crypto/version.ts';
import { HubError, type HubErrorCode } from '../../../platform/errors.ts';
import { phraseIn, text } from '../../../platform/texts/text.ts';
import { adminLink, openedBy } from '../elements/admin-link.ts';
import { actorOf } from '../elements/audit-table.ts';
import { Html, html } from '../html.ts';
import type { ConfirmLogin } from '../login/confirm-login.ts';
import type { PageContext } from '../page-context.ts';
import { withHint } from '../problem-of.ts';
import type {
  Answer,
  BoundPages,
  Changes,
  Entrance,
  Failure,
  ModelOf,
  PageOptions,
  Parameters,
  Shown,
  Visitor,
} from './binding.ts';
import { readQuery } from './declared-query.ts';
import { markField } from './mark-field.ts';
import { goTo } from './next.ts';

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

/** What follows the name of a field elsewhere, by itself. */
const sentence = (words: string) =>
  `${words.charAt(0).toLocaleUpperCase()}${words.slice(1)}${/[.!?]$/.test(words) ? '' : '.'}`;

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
      query: { ...ctx.query, ...(failure && options?.againQuery?.(failure.sent)) },
      requireRecentLogin: () => confirmLogin.require(ctx),
    });
    const operation = operationOf(id);
    const query = ctx.querystring === '' ? undefined : readQuery(ctx, operation, options);
    const answer = await show({
      layout: {
        ...(await pages.formLayoutFor(ctx)),
        passedOver: failure === undefined ? query?.passedOver : undefined,
      },
      model,
      params,
      search: query?.search ?? new URLSearchParams(),
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
    if (answer instanceof Html) {
      pages.send(ctx, answer, failure?.status ?? 200);
      if (failure?.field === undefined) return;
      const { name, problem } = failure.field;
      const said = sentence(phraseIn(problem, pages.languageOf(ctx)));
      ctx.body = await markField(String(ctx.body), ctx.path, { name, problem: said });
    } else if (answer !== undefined) ctx.redirect(answer.redirect);
  }

  const koaPath = (path: string) => path.replaceAll(/\{(\w+)\}/g, ':$1');

  return {
    pages,

    page(path, id, show, options) {
      const operation = operationOf(id);
      deps.entrances.push({ kind: 'page', path, operation, areaScope });
      router.get(
        koaPath(path),
        pages.loggedIn(async (ctx, login) => {
          const visitor = await visitorOf(login);
          try {
            await respond(ctx, visitor, { id, show, options });
          } catch (error) {
            if (!(error instanceof HubError) || error.code !== 'recent_login_required') throw error;
            ctx.redirect(pages.urls.confirmLogin(pages.ownPathOf(ctx.originalUrl)));
          }
        }),
      );
      return (ctx, visitor, failure) => respond(ctx, visitor, { id, show, options, failure });
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
            return again(ctx, visitor, { path, sent, problem, field: error.field, status });
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
            read: (asked, { body, ...more }) =>
              read(asked, visitor, { ...more, readBody: async () => body }),
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
