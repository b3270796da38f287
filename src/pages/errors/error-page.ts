import { focusLayout, pageLayout } from '../elements/layout.ts';
import type { LayoutProps } from '../elements/layout-props.ts';
import { duration } from '../elements/time.ts';
import { type Html, type HtmlValue, html } from '../html.ts';

export interface ErrorView {
  readonly layout: LayoutProps;
  readonly status: number;
  /** What happened, in a sentence. */
  readonly message: string;
  /** What to do about it. */
  readonly hint?: string | undefined;
  readonly retryAfterSeconds?: number | undefined;
  /** Ties the page to the log line of an unforeseen error. */
  readonly errorId?: string | undefined;
  /** Further lines for the administrator. */
  readonly details?: string | undefined;
  /** In place of the button to the home page. */
  readonly action?: { readonly label: string; readonly url: string } | undefined;
}

/** The page of every failure: what happened, what to do next, and an id to ask about. */
export function errorPage(view: ErrorView): Html {
  const { layout, status, message, details } = view;
  const title = titleOf(status);
  const action = view.action ?? defaultAction(view);
  const body = html`<div class="panel error">
<header class="titles"><p class="error-number">Error ${status}</p><h1>${title}</h1><p class="lead">${message}</p></header>
<p>${adviceOf(view)}</p>
${details !== undefined && html`<details class="more"><summary>Details</summary><pre class="output" tabindex="0">${details}</pre></details>`}
${ids(view)}
<a class="button primary wide" href="${action.url}">${action.label}</a>
</div>`;
  // Who is logged in goes on from here by the navigation.
  const inFrame = layout.user === undefined ? focusLayout : pageLayout;
  return inFrame(layout, { title, body });
}

/** The page of an address where nothing is. */
export function notFoundPage({ layout }: { readonly layout: LayoutProps }): Html {
  return errorPage({
    layout,
    status: 404,
    message: 'There is no page at this address.',
    hint: 'Check the address for a typing mistake. If a link brought you here, what it pointed to may be gone.',
  });
}

function ids({ layout, errorId }: ErrorView): HtmlValue {
  const requestId = layout.requestId;
  if (errorId === undefined && requestId === undefined) return false;
  return html`<p class="small soft">If you ask for help, give ${errorId !== undefined && html`the error id <code>${errorId}</code>`}${errorId !== undefined && requestId !== undefined && ' and '}${requestId !== undefined && html`the request id <code>${requestId}</code>`}.</p>`;
}

function adviceOf({ status, hint, retryAfterSeconds }: ErrorView): string {
  const retry = retryAfterSeconds !== undefined && `Try again in ${duration(retryAfterSeconds)}.`;
  if (hint !== undefined) return retry ? `${hint} ${retry}` : hint;
  return retry || defaultHint(status);
}

function defaultAction({ layout, status }: ErrorView): {
  readonly label: string;
  readonly url: string;
} {
  if (status === 401) return { label: 'Log in', url: layout.urls.login };
  const label = layout.user === undefined ? 'Go to the start page' : 'Go to your home page';
  return { label, url: layout.urls.home };
}

const titles: Readonly<Record<number, string>> = {
  400: 'That request made no sense',
  401: 'You are not logged in',
  403: 'You may not open this',
  404: 'Nothing here',
  405: 'That is not possible here',
  408: 'That took too long',
  409: 'Something else came first',
  413: 'That is too large',
  424: 'The server is not running',
  429: 'Too many requests',
  431: 'The request is too large',
  500: 'Something went wrong',
  502: 'The page behind the hub failed',
  503: 'Not available right now',
  504: 'The page behind the hub did not answer',
};

const titleOf = (status: number): string =>
  titles[status] ?? (status >= 500 ? 'Something went wrong' : 'That did not work');

const hints: Readonly<Record<number, string>> = {
  401: 'Log in, and you get back to where you were.',
  403: 'If you think you should have access, ask your administrator.',
  404: 'Check the address, or begin again at your home page.',
};

const defaultHint = (status: number): string =>
  hints[status] ??
  (status >= 500
    ? 'This is not your doing. Wait a moment and load the page again.'
    : 'Go back and try it again in another way.');
