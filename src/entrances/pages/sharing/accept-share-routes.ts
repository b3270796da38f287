import type Router from '@koa/router';
import { text } from '../../../platform/texts/text.ts';
import type { BoundPages } from '../forms/binding.ts';
import { noteOpenedServer } from '../servers/opened-servers.ts';
import { acceptSharePage } from './accept-share-page.ts';

/** `/hub/accept-share`, which the link of a code opens, and `/hub/leave-shared`. */
export function acceptShareRoutes(router: Router, { page, form, pages }: BoundPages): void {
  // Without the code in it: the server that is opened next would read it in the Referer.
  router.use('/accept-share', async (ctx, next) => {
    ctx.set('Referrer-Policy', 'strict-origin');
    await next();
  });

  page(
    '/accept-share',
    'viewShareCode',
    ({ layout, model, search }) => {
      const { server, scopeNames, isRunning, code } = model;
      return acceptSharePage({
        layout,
        ownerName: server.userName,
        serverName: server.name,
        scopeNames,
        isRunning,
        code,
        next: pages.nextOf(search),
      });
    },
    { query: ['next'] },
  );

  form('/accept-share', 'acceptShareCode', {
    // JupyterHub's clients send the form to the address of the page, with nothing in it but the token.
    body: (sent, _params, { querystring }) => ({
      code: sent.get('code') ?? new URLSearchParams(querystring).get('code') ?? undefined,
    }),
    done({ sent, result: { id, prefix }, ctx }) {
      // The page has warned of it already.
      noteOpenedServer(ctx, { id });
      const next = pages.nextOf(sent) ?? pages.nextOf(new URLSearchParams(ctx.querystring));
      return { redirect: pages.urlOf(next ?? prefix) };
    },
  });

  form('/leave-shared', 'endShareOfUser', {
    params: (sent, { login }) => ({
      name: login.user.name,
      owner: sent.get('owner') ?? '',
      server: sent.get('server') ?? '',
    }),
    done: ({ params: { owner = '' } }) => ({
      to: pages.urls.home,
      say: text`You have left the server of ${owner}.`,
    }),
  });
}
