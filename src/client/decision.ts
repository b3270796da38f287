import type { HubError } from '../errors.ts';
import { type Answer, errorAnswer, retryAfterHeader } from '../http/answer.ts';
import { toErrorResponse } from '../http/error-response.ts';
import type { UserModel } from './hub-api.ts';

/** What a decision is made from; Node's `IncomingMessage` is one. */
export interface RequestLike {
  readonly method?: string | undefined;
  /** Path and query as they arrived. */
  readonly url?: string | undefined;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
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

/** What shall happen to a request. */
export type Decision = Allowed | Redirected | Denied;

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

/** Writes a redirect or a denial as an answer: a small page for browsers, JSON for programs. */
export function toAnswer(decision: Redirected | Denied, wantsPage: boolean): Answer {
  const setCookies =
    decision.setCookies.length === 0 ? {} : { 'set-cookie': [...decision.setCookies] };
  if (decision.kind === 'redirect') {
    const headers = { 'cache-control': 'no-store', 'referrer-policy': 'same-origin' };
    return {
      status: 302,
      headers: { ...headers, ...setCookies, location: decision.location },
      body: '',
    };
  }
  const answer = errorAnswer(toErrorResponse(decision.error), {
    headers: {
      ...decision.headers,
      ...setCookies,
      ...(wantsPage && { 'content-security-policy': pagePolicy }),
    },
    ...(wantsPage && { page: denialPage(decision.error) }),
  });
  return { ...answer, status: decision.status };
}

const pagePolicy =
  "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'self'; base-uri 'none'";

function denialPage(error: HubError): string {
  const hint = error.hint === undefined ? '' : `<p>${escapeHtml(error.hint)}</p>`;
  return `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${escapeHtml(error.message)}</title>
<style>:root{color-scheme:light dark}body{font:1rem/1.6 system-ui,sans-serif;max-width:36rem;margin:15vh auto;padding:0 1rem}h1{font-size:1.4rem}</style>
<h1>${escapeHtml(error.message)}</h1>${hint}
</html>
`;
}

function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
