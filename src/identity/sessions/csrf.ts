import type { Context, Middleware } from 'koa';
import type { KeyedHash } from '../../platform/crypto/hash.ts';
import { randomSecret } from '../../platform/crypto/random.ts';
import { HubError } from '../../platform/errors.ts';
import { cookieValues, setCookie } from '../../platform/http/cookies.ts';
import { keepOpener } from '../../platform/http/security-headers.ts';
import { formCookie, sessionIdCookie } from '../../platform/protocol/cookie-names.ts';
import { text } from '../../platform/texts/text.ts';
import { loginOf } from './session-middleware.ts';

/** Protects forms and cookie-authenticated API calls against requests forged by other sites. */
export interface CsrfProtection {
  /** The token for the forms of this answer; may set the cookie an anonymous form is bound to. */
  token(ctx: Context): string;
  /** Throws `csrf_failed` unless the request comes from the hub's own origin with a valid token. */
  require(ctx: Context, submitted: string | undefined): void;
  /** What a token proves of whose page it stood on, also after the login has ended; undefined for one without a login. */
  readerProofIn(submitted: string): string | undefined;
  /** Whether that is the page of this user, in any login of theirs. */
  isReader(userId: string, proof: string): boolean;
  /**
   * The login that a form was made for, which may have ended: one of those whose id the browser still has. Undefined
   * for a form of none.
   */
  loginOfForm(ctx: Context, submitted: string): string | undefined;
  /**
   * Throws `csrf_failed` unless a window of its own opens this address, or a page of the hub asks for it with
   * its token in `X-CSRF-Token`. Passes where the browser does not say (no Sec-Fetch-Mode).
   */
  requireDocument(ctx: Context): void;
  /**
   * Requires a document for every page but the open ones. At the authorize paths, which lead on elsewhere, also in a
   * frame, a navigation is enough, and the answer keeps its opener.
   */
  middleware(paths: {
    readonly hubPath: string;
    readonly apiPath: string;
    readonly openPaths: readonly string[];
    readonly authorizePaths: readonly string[];
  }): Middleware;
  /** Throws `csrf_failed` unless a page of the hub asks with its token, or a window opens this address. */
  requireForApi(ctx: Context): void;
}

const anonymousLifetimeSeconds = 24 * 3600;

/**
 * A token is the keyed hash of the login session, or of a random cookie before
 * login. After a dot follows that of the user, which outlives the session and allows nothing by itself. Browsers say
 * where a request comes from (Sec-Fetch-Site, Origin); what they say is checked first, so that a cookie planted by a
 * sibling site does not help an attacker.
 */
export function createCsrfProtection(options: {
  readonly keyedHash: KeyedHash;
  readonly publicUrl: URL;
  readonly cookiePath: string;
}): CsrfProtection {
  const { keyedHash, publicUrl, cookiePath } = options;
  const isSecure = publicUrl.protocol === 'https:';

  const loginBinding = (ctx: Context): string | undefined => {
    const login = loginOf(ctx);
    return login && `login:${login.session.sessionId}`;
  };
  const readerBinding = (userId: string) => `reader:${userId}`;
  const signatureIn = (token: string) => token.split('.', 1)[0] ?? '';
  const anonymousBindings = (ctx: Context): string[] =>
    cookieValues(ctx.req.headers.cookie, formCookie)
      .filter((id) => /^[A-Za-z0-9_-]{43}$/.test(id))
      .map((id) => `anonymous:${id}`);

  function require(ctx: Context, submitted: string | undefined): void {
    if (!isSameOrigin(ctx, publicUrl)) throw refused();
    if (submitted === undefined || submitted === '') throw refused();
    const login = loginBinding(ctx);
    const bindings = login === undefined ? anonymousBindings(ctx) : [login];
    if (!bindings.some((binding) => keyedHash.verify(binding, signatureIn(submitted)))) {
      throw refused();
    }
  }

  function requireDocument(ctx: Context): void {
    const mode = fetchMode(ctx);
    if (mode === undefined || mode === 'document') return;
    const submitted = headerToken(ctx);
    if (submitted === undefined) throw notForScripts();
    require(ctx, submitted);
  }

  return {
    require,
    requireDocument,
    readerProofIn: (submitted) => submitted.split('.', 2)[1],
    isReader: (userId, proof) => keyedHash.verify(readerBinding(userId), proof),

    loginOfForm: (ctx, submitted) =>
      cookieValues(ctx.req.headers.cookie, sessionIdCookie).find((id) =>
        keyedHash.verify(`login:${id}`, signatureIn(submitted)),
      ),

    middleware:
      ({ hubPath, apiPath, openPaths, authorizePaths }) =>
      async (ctx, next) => {
        const isPage = ctx.path.startsWith(hubPath) && !ctx.path.startsWith(apiPath);
        // Without a cookie there is no login that a script could use.
        const hasCookie = ctx.req.headers.cookie !== undefined;
        if (isPage && !openPaths.includes(ctx.path) && hasCookie) requireDocument(ctx);
        if (authorizePaths.includes(ctx.path)) {
          keepOpener(ctx);
          if (hasCookie && fetchMode(ctx) === 'other') throw notForScripts();
        }
        await next();
      },

    requireForApi(ctx) {
      // A change is never made by opening a window.
      if (isRead(ctx) && fetchMode(ctx) === 'document') return;
      const submitted = headerToken(ctx);
      if (submitted === undefined && isRead(ctx)) throw notForScripts();
      require(ctx, submitted);
    },

    token(ctx) {
      const login = loginOf(ctx);
      const binding = loginBinding(ctx);
      if (login !== undefined && binding !== undefined) {
        return [binding, readerBinding(login.user.id)].map(keyedHash.sign).join('.');
      }
      const known = ctx.state['formBinding'] as string | undefined;
      if (known !== undefined) return keyedHash.sign(known);
      const [existing] = anonymousBindings(ctx);
      if (existing !== undefined) return keyedHash.sign(existing);
      const id = randomSecret();
      setCookie(ctx, formCookie, id, {
        path: cookiePath,
        secure: isSecure,
        maxAgeSeconds: anonymousLifetimeSeconds,
      });
      ctx.state['formBinding'] = `anonymous:${id}`;
      return keyedHash.sign(`anonymous:${id}`);
    },
  };
}

/**
 * How a request came about (Fetch Metadata Request Headers, W3C): a window of its own opens the address, a
 * frame does, or anything else, such as a script. Undefined where the browser does not say. No script can set these headers.
 */
function fetchMode(ctx: Context): 'document' | 'frame' | 'other' | undefined {
  const {
    'sec-fetch-mode': mode,
    'sec-fetch-dest': destination,
    'sec-purpose': purpose,
  } = ctx.req.headers;
  // A page fetched ahead was asked for by the page that shows the link, not by the visitor.
  if (purpose !== undefined) return 'other';
  if (mode === undefined) return undefined;
  if (mode !== 'navigate') return 'other';
  return destination === undefined || destination === 'document' ? 'document' : 'frame';
}

/** Whether a script of a page asks, rather than a window that shows the answer. */
export function isFromScript(ctx: Context): boolean {
  return fetchMode(ctx) === 'other' || headerToken(ctx) !== undefined;
}

function headerToken(ctx: Context): string | undefined {
  return ctx.get('X-CSRF-Token') || ctx.get('X-XSRFToken') || undefined;
}

function isRead({ method }: Context): boolean {
  return method === 'GET' || method === 'HEAD' || method === 'OPTIONS';
}

/** Whether the browser says that the request comes from the hub's own pages, or does not say. */
export function isSameOrigin(ctx: Context, publicUrl: URL): boolean {
  const site = ctx.req.headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return false;
  const { origin } = ctx.req.headers;
  if (origin === undefined) return true;
  if (origin === publicUrl.origin) return true;
  // The hub may be reached by another name than its public one, for example as localhost.
  return URL.parse(origin)?.host === ctx.req.headers.host;
}

function refused(): HubError {
  return new HubError('csrf_failed', text`This form is no longer valid.`, {
    hint: text`Go back, reload the page and try again.`,
  });
}

function notForScripts(): HubError {
  return new HubError('csrf_failed', text`The hub answers this to its own pages only.`, {
    hint: text`Open the address in a window of its own, or send an API token.`,
  });
}
