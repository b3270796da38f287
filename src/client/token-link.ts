import type { Sealer } from '../platform/crypto/sealer.ts';
import {
  createStateCookies,
  type PendingState,
  type StateCookies,
} from '../platform/http/state-cookies.ts';
import { escapeHtml, type Shown, show } from './decision.ts';

/** A link with a token that a browser has followed; its user has not said yet whether to go on as the token's. */
export interface PendingLink extends PendingState {
  readonly token: string;
}

/** The query parameter that names such a link at the callback of the service. */
const linkParameter = 'link';

/** `stateCookie` is the base of the names of state cookies: these add to it. */
export function createTokenLinks(sealer: Sealer, stateCookie: string): StateCookies<PendingLink> {
  return createStateCookies(sealer, `${stateCookie}-link`);
}

/** The link that a request to the callback is about, as opposed to a login. */
export function linkIdOf(url: string): string | undefined {
  const [, query = ''] = url.split('?', 2);
  return new URLSearchParams(query).get(linkParameter) ?? undefined;
}

/** Where the browser is asked, and answers. */
export function linkUrl(callbackPath: string, linkId: string): string {
  return `${callbackPath}?${new URLSearchParams({ [linkParameter]: linkId })}`;
}

/** The page that asks. `ownUrl`: the page of the link without its token. */
export function tokenLinkPage(view: {
  readonly userName: string;
  readonly action: string;
  readonly ownUrl: string;
}): Shown {
  const name = escapeHtml(view.userName);
  return show({
    title: `Continue as ${view.userName}?`,
    content: `<p>The link that you followed logs you in here as <b>${name}</b>. Whatever you do then is done in the name of ${name}, who may see it.</p>
<p>Continue only if you know who made the link.</p>
<form method="post" action="${escapeHtml(view.action)}"><a href="${escapeHtml(view.ownUrl)}">Log in as yourself</a> <button>Continue as ${name}</button></form>`,
  });
}
