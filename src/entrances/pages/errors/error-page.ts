import { type Phrase, type Text, text } from '../../../platform/texts/text.ts';
import { customFragment } from '../elements/brand.ts';
import { focusLayout, pageLayout } from '../elements/layout.ts';
import type { LayoutProps } from '../elements/layout-props.ts';
import { afterDuration } from '../elements/quantity.ts';
import { type Html, type HtmlValue, html } from '../html.ts';

export interface ErrorView {
  readonly layout: LayoutProps;
  readonly status: number;
  /** What happened, in a sentence. */
  readonly message: Phrase;
  /** What to do about it. */
  readonly hint?: Phrase | undefined;
  readonly retryAfterSeconds?: number | undefined;
  /** Ties the page to the log line of an unforeseen error. */
  readonly errorId?: string | undefined;
  /** Further lines for the administrator. */
  readonly details?: string | undefined;
  /** In place of the button to the home page. */
  readonly action?: { readonly label: Phrase; readonly url: string } | undefined;
}

/** The page of every failure: what happened, what to do next, and an id to ask about. */
export function errorPage(view: ErrorView): Html {
  const { layout, status, message, details } = view;
  const title = titleOf(status);
  const action = view.action ?? defaultAction(view);
  const body = html`<div class="panel error">
<header class="titles"><p class="error-number">${text`Error ${status}`}</p><h1>${title}</h1><p class="lead">${message}</p></header>
<p>${adviceOf(view)}</p>
${customHelp(view)}${details !== undefined && html`<details class="more"><summary>${text`Details`}</summary><pre class="output" tabindex="0">${details}</pre></details>`}
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
    message: text`There is no page at this address.`,
    hint: text`Check the address for a typing mistake. If a link brought you here, what it pointed to may be gone.`,
  });
}

function customHelp({ layout, status }: ErrorView): HtmlValue {
  return customFragment(layout, 'error-help', {
    values: { error_status: status },
    around: (help) => html`<div class="own-part">${help}</div>\n`,
  });
}

function ids({ layout, errorId }: ErrorView): HtmlValue {
  const { requestId } = layout;
  const [error, request] = [html`<code>${errorId}</code>`, html`<code>${requestId}</code>`];
  if (errorId === undefined && requestId === undefined) return false;
  return html`<p class="small soft">${
    requestId === undefined
      ? text`Error ID for support: ${error}.`
      : errorId === undefined
        ? text`Request ID for support: ${request}.`
        : text`Error ID for support: ${error}, request ID: ${request}.`
  }</p>`;
}

function adviceOf({ status, hint, retryAfterSeconds }: ErrorView): HtmlValue {
  const retry =
    retryAfterSeconds !== undefined && text`Try again ${afterDuration(retryAfterSeconds)}.`;
  if (hint !== undefined) return retry ? html`${hint} ${retry}` : hint;
  return retry || defaultHint(status);
}

function defaultAction({ layout, status }: ErrorView): {
  readonly label: Phrase;
  readonly url: string;
} {
  if (status === 401) return { label: text`Log in`, url: layout.urls.login };
  const label = layout.user === undefined ? text`Go to the start page` : text`Go to your home page`;
  return { label, url: layout.urls.home };
}

const titles: Readonly<Record<number, Text>> = {
  400: text`That request made no sense`,
  401: text`You are not logged in`,
  403: text`You don’t have access`,
  404: text`Page not found`,
  405: text`That is not possible here`,
  408: text`That took too long`,
  409: text`Someone changed this before you`,
  413: text`That is too large`,
  424: text`The server is not running`,
  429: text`Too many requests`,
  431: text`The request is too large`,
  500: text`Something went wrong`,
  502: text`The page behind the hub failed`,
  503: text`Not available right now`,
  504: text`The page behind the hub did not answer`,
};

const titleOf = (status: number): Text =>
  titles[status] ?? (status >= 500 ? text`Something went wrong` : text`That did not work`);

const hints: Readonly<Record<number, Text>> = {
  401: text`Log in, and you get back to where you were.`,
  403: text`If you think you should have access, ask your administrator.`,
  404: text`Check the address, or begin again at your home page.`,
};

const defaultHint = (status: number): Text =>
  hints[status] ??
  (status >= 500
    ? text`This is not your fault. Wait a moment and load the page again.`
    : text`Go back and try it again in another way.`);
