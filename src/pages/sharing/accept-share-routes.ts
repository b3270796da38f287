import type Router from '@koa/router';
import type { Context } from 'koa';
import { HubError } from '../../errors.ts';
import { unreachableSince } from '../../servers/server.ts';
import type { UserServers } from '../../servers/user-servers.ts';
import type { Sharing } from '../../sharing/sharing.ts';
import { text } from '../../texts/text.ts';
import type { PageContext } from '../page-context.ts';
import { noteOpenedServer } from '../servers/opened-servers.ts';
import { acceptSharePage } from './accept-share-page.ts';

/** `/hub/accept-share`, which the link of a code opens, and `/hub/leave-shared`. */
export function acceptShareRoutes(
  router: Router,
  deps: {
    readonly pages: PageContext;
    readonly servers: Pick<UserServers, 'prefixOf'>;
    readonly sharing: Pick<Sharing, 'findCode' | 'acceptCode' | 'leave'>;
  },
): void {
  const { pages, sharing } = deps;

  /** Without the code in it: the server that is opened next would read it in the Referer. */
  const hideAddress = (ctx: Context) => ctx.set('Referrer-Policy', 'strict-origin');

  router.get(
    '/accept-share',
    async (ctx, next) => {
      hideAddress(ctx);
      await next();
    },
    pages.loggedIn(async (ctx, { user }) => {
      const query = new URLSearchParams(ctx.querystring);
      const code = requireCode(query.get('code'));
      const { server, scopeNames } = await sharing.findCode(code, user, ctx.request.ip);
      const page = acceptSharePage({
        layout: await pages.formLayoutFor(ctx),
        ownerName: server.userName,
        serverName: server.name,
        scopeNames,
        isRunning: server.state === 'running' && unreachableSince(server) === undefined,
        code,
        next: pages.nextOf(query),
      });
      pages.send(ctx, page);
    }),
  );

  router.post(
    '/accept-share',
    pages.loggedIn(async (ctx, { user }) => {
      hideAddress(ctx);
      const form = await pages.readForm(ctx);
      const query = new URLSearchParams(ctx.querystring);
      const code = requireCode(form.get('code') ?? query.get('code'));
      let accepted: Awaited<ReturnType<Sharing['acceptCode']>>;
      try {
        accepted = await sharing.acceptCode(code, user, ctx.request.ip);
      } catch (error) {
        throw asBadRequest(error);
      }
      const prefix = deps.servers.prefixOf(accepted.server);
      // The page has warned of it already.
      noteOpenedServer(ctx, prefix);
      ctx.redirect(pages.urlOf(pages.nextOf(form) ?? pages.nextOf(query) ?? prefix));
    }),
  );

  router.post(
    '/leave-shared',
    pages.loggedIn(async (ctx, { user }) => {
      const form = await pages.readForm(ctx);
      const [owner, server] = [form.get('owner') ?? '', form.get('server') ?? ''];
      await sharing.leave({ kind: 'user', name: user.name }, owner, server);
      pages.redirectWithNotice(ctx, pages.urls.home, {
        kind: 'good',
        text: text`You have left the server of ${owner}.`,
      });
    }),
  );
}

function requireCode(code: string | null): string {
  if (code !== null && code !== '') return code;
  throw new HubError('bad_request', text`The address has no code in it.`, {
    hint: text`Open the whole link as you got it.`,
  });
}

/** A form is not an address: what it names need not be found. */
function asBadRequest(error: unknown): unknown {
  if (!(error instanceof HubError)) return error;
  if (error.code !== 'not_found' && error.code !== 'forbidden') return error;
  return new HubError('bad_request', error.shown.message, {
    cause: error,
    ...(error.shown.hint !== undefined && { hint: error.shown.hint }),
  });
}
