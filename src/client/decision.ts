import type { HubError } from '../platform/errors.ts';
import {
  type Answer,
  errorAnswer,
  retryAfterHeader,
  toErrorResponse,
} from '../platform/http/answer.ts';
import type { UserModel } from './hub-api.ts';

/** What a decision is made from; Node's `IncomingMessage` is one. */
export interface RequestLike {
  readonly method?: string | undefined;
  /** Path and query as they arrived. */
  readonly url?: string | undefined;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** One value of a header that may not be repeated. */
export function single(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header;
}

/** Where a request carried its token. */
export type TokenSource = 'url' | 'header' | 'cookie';

/** The request may be served. */
export interface Allowed {
  readonly kind: 'allowed';
  readonly user: UserModel;
  readonly token: string;
  readonly source: TokenSource;
  /** Path and query without the token that was in them. */
  readonly url: string;
}

/** The browser must go elsewhere first (302). */
export interface Redirected {
  readonly kind: 'redirect';
  readonly location: string;
  /** Values of Set-Cookie headers. */
  readonly setCookies: readonly string[];
}

/** The request must not be served. */
export interface Denied {
  readonly kind: 'denied';
  readonly status: number;
  /** Why; message and hint are fit for the visitor, the cause is for the log. */
  readonly error: HubError;
  readonly headers: Readonly<Record<string, string>>;
  readonly setCookies: readonly string[];
  /** Who was refused, when that is known. */
  readonly user?: UserModel;
}

/** The browser is shown a page of the client library itself (200). */
export interface Shown {
  readonly kind: 'page';
  readonly html: string;
}

/** What shall happen to a request. */
export type Decision = Allowed | Redirected | Denied | Shown;

/** What happens to a request that the service does not get to serve. */
export type Answered = Exclude<Decision, Allowed>;

/** Turns an error into a denial. */
export function deny(
  error: HubError,
  rest: Partial<Pick<Denied, 'headers' | 'setCookies' | 'user'>> = {},
): Denied {
  const response = toErrorResponse(error);
  return {
    kind: 'denied',
    status: response.status,
    error,
    setCookies: [],
    ...rest,
    headers: { ...retryAfterHeader(response), ...rest.headers },
  };
}

/** Writes a decision as an answer; a denial as a small page for browsers, JSON for programs. */
export function toAnswer(decision: Answered, wantsPage: boolean): Answer {
  switch (decision.kind) {
    case 'redirect':
      return {
        status: 302,
        headers: {
          'cache-control': 'no-store',
          'referrer-policy': 'same-origin',
          ...setCookieHeader(decision.setCookies),
          location: decision.location,
        },
        body: '',
      };
    case 'page':
      return { status: 200, headers: questionHeaders, body: decision.html };
    case 'denied': {
      const answer = errorAnswer(toErrorResponse(decision.error), {
        headers: {
          ...decision.headers,
          ...setCookieHeader(decision.setCookies),
          ...(wantsPage && { 'content-security-policy': pagePolicy("frame-ancestors 'self'") }),
        },
        ...(wantsPage && { page: denialPage(decision.error) }),
      });
      return { ...answer, status: decision.status };
    }
  }
}

function setCookieHeader(setCookies: readonly string[]): Answer['headers'] {
  return setCookies.length === 0 ? {} : { 'set-cookie': [...setCookies] };
}

function pagePolicy(...directives: readonly string[]): string {
  return ["default-src 'none'", "style-src 'unsafe-inline'", "base-uri 'none'", ...directives].join(
    '; ',
  );
}

/** Of a page that asks something: no other page may show it in a frame or press its button. */
const questionHeaders = {
  'cache-control': 'no-store',
  'referrer-policy': 'same-origin',
  'x-content-type-options': 'nosniff',
  'cross-origin-opener-policy': 'same-origin',
  'content-security-policy': pagePolicy("form-action 'self'", "frame-ancestors 'none'"),
  'content-type': 'text/html; charset=utf-8',
};

/** Shows a small page; `content` is HTML. */
export function show(page: { readonly title: string; readonly content: string }): Shown {
  return { kind: 'page', html: smallPage(page) };
}

function denialPage(error: HubError): string {
  const content = error.hint === undefined ? '' : `<p>${escapeHtml(error.hint)}</p>`;
  return smallPage({ title: error.message, content });
}

function smallPage({ title, content }: { title: string; content: string }): string {
  return `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${escapeHtml(title)}</title>
<style>:root{color-scheme:light dark}body{font:1rem/1.6 system-ui,sans-serif;max-width:36rem;margin:15vh auto;padding:0 1rem;overflow-wrap:anywhere}h1{font-size:1.4rem;line-height:1.3}form{display:flex;flex-wrap:wrap;gap:1rem 1.5rem;align-items:center;margin-top:2rem}button{font:inherit;padding:.5rem 1rem}</style>
<h1>${escapeHtml(title)}</h1>${content}
</html>
`;
}

export function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
