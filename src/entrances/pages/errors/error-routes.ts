import type Router from '@koa/router';
import { HubError } from '../../../platform/errors.ts';
import { text } from '../../../platform/texts/text.ts';
import type { PageContext } from '../page-context.ts';
import { errorPage } from './error-page.ts';

/**
 * `/hub/error/<code>`: the page of an error that a proxy in front of the hub met, for its
 * `error_page` or `ErrorDocument`. Answered with 200: the proxy keeps the status of its own answer.
 */
export function errorRoutes(router: Router, { pages }: { readonly pages: PageContext }): void {
  router.get('/error/:code', async (ctx) => {
    const code = ctx.params['code'] ?? '';
    if (!/^[45]\d\d$/.test(code)) {
      throw new HubError('not_found', text`There is no such error.`, {
        hint: text`Errors of HTTP are 400 to 599.`,
      });
    }
    const status = Number(code);
    ctx.set('Cache-Control', 'no-store');
    pages.send(ctx, errorPage({ layout: await pages.layoutFor(ctx), ...tell(status), status }));
  });
}

/** What happened, and what to do, where the page itself does not say. */
function tell(status: number): { readonly message: string; readonly hint?: string } {
  switch (status) {
    case 404:
      return { message: 'There is no page at this address.' };
    case 502:
    case 503:
    case 504:
      return {
        message: 'What you asked for does not answer.',
        hint: 'It may be starting again. Wait a moment and load the page again.',
      };
    default:
      return { message: 'The server in front of the hub answered with this error.' };
  }
}
