import type { Context } from 'koa';
import { keepOpener } from '../../../platform/http/security-headers.ts';
import type { PageUrls } from '../page-urls.ts';

/**
 * Leaves a popup connected with the page that opened it while its login leads to an authorization: the client tells that
 * page how it ended. All other pages of the hub cut the connection.
 */
export function keepOpenerFor(
  ctx: Context,
  { authorize }: Pick<PageUrls, 'authorize'>,
  /** Where the login leads, a checked path. */
  next: string | undefined,
): void {
  if (next?.split('?', 1)[0] === authorize) keepOpener(ctx);
}
