import type { Keyv } from 'keyv';
import type Koa from 'koa';
import type { Context, Middleware } from 'koa';
import { createSession } from 'koa-session';
import { type Actor, identifyActor } from '../../platform/audit/actor.ts';
import { hashSecret } from '../../platform/crypto/hash.ts';
import { randomSecret } from '../../platform/crypto/random.ts';
import type { Sealer } from '../../platform/crypto/sealer.ts';
import { cookieValues, openOnlyCookie, setCookie } from '../../platform/http/cookies.ts';
import { noteCallerName } from '../../platform/http/request-log.ts';
import { loginCookie } from '../../platform/protocol/cookie-names.ts';
import type { Login, LoginSessionStart, LoginSessions } from './login-sessions.ts';

/** What the external store holds for a browser. */
interface StoredSession {
  readonly sessionId?: string;
  /** When the user last gave a password, a code or an external login; milliseconds since 1970. */
  readonly authenticatedAt?: number;
}

/** Logs browsers in and out. */
export interface BrowserSessions {
  /** Reads the login of every request into `ctx.state.login`. */
  readonly middleware: Middleware;
  /** Begins a login; an earlier one of the same browser ends. */
  begin(ctx: Context, login: LoginSessionStart): Promise<void>;
  /**
   * Records that the user of this browser has just shown again who they are. The browser gets a new
   * cookie and the former one ends, so that who has stolen that gains nothing.
   */
  confirm(ctx: Context): Promise<void>;
  /** Ends the login of this browser; its tokens are revoked. */
  end(ctx: Context): Promise<void>;
}

/** The login of a request, when there is one. */
export function loginOf(ctx: Context): Login | undefined {
  return ctx.state['login'] as Login | undefined;
}

/** When the user of a request's login last showed who they are; undefined where that is not known. */
export function authenticatedAtOf(ctx: Context): Date | undefined {
  const { authenticatedAt } = (ctx['session'] ?? {}) as StoredSession;
  return authenticatedAt === undefined ? undefined : new Date(authenticatedAt);
}

/**
 * Browser sessions on koa-session: the cookie holds a sealed random key and nothing else,
 * and the store knows the key only as a hash.
 */
export function createBrowserSessions(options: {
  readonly app: Koa;
  readonly store: Keyv<StoredSession>;
  readonly sealer: Sealer;
  readonly logins: LoginSessions;
  readonly basePath: string;
  readonly isSecure: boolean;
  readonly lifetimeSeconds: number;
  /** Milliseconds since 1970, by a clock that all processes share. */
  readonly now: () => number;
  /** Names under which the session id is given to browsers. */
  readonly sessionIdCookies: ReadonlySet<string>;
  /** The login as it is now, or undefined when it has ended at its provider. */
  readonly revalidate: (login: Login) => Promise<Login | undefined>;
  /** Where logins are ended, which works whatever the provider says. */
  readonly logoutPath: string;
}): BrowserSessions {
  const { store, sealer, logins, basePath, isSecure, lifetimeSeconds } = options;
  const path = `${basePath}hub/`;
  const apiPath = `${path}api/`;
  const maxAgeMs = lifetimeSeconds * 1000;
  const sessionIdCookies = [...options.sessionIdCookies];

  const sessionOptions = {
    key: loginCookie,
    maxAge: maxAgeMs,
    path,
    httpOnly: true,
    signed: false,
    secure: isSecure,
    sameSite: 'lax',
    genid: () => randomSecret(),
    externalKey: {
      get: (ctx: Context) => readKey(ctx),
      set: (ctx: Context, key: string) => {
        setCookie(ctx, loginCookie, sealer.seal(key, loginCookie), {
          path,
          secure: isSecure,
          maxAgeSeconds: lifetimeSeconds,
        });
      },
    },
    store: {
      get: async (key: string) => store.get(hashSecret(key)),
      set: async (key: string, session: StoredSession, maxAge: number) => {
        await store.set(hashSecret(key), session, maxAge);
      },
      destroy: async (key: string) => {
        await store.delete(hashSecret(key));
      },
    },
  };
  // The package describes these callbacks with types that no asynchronous function satisfies.
  const koaSession = createSession(sessionOptions as never, options.app as never) as Middleware;

  /**
   * Two different valid login cookies mean that another site planted one: then neither counts. Those at
   * other paths are removed, since a page that gets both and a login page that gets one would redirect
   * the browser to each other endlessly.
   */
  function readKey(ctx: Context): string {
    const { cookie } = ctx.req.headers;
    if (cookieValues(cookie, loginCookie).length > 1) expireRemote(ctx);
    return openOnlyCookie(sealer, cookie, loginCookie) ?? '';
  }

  function expireRemote(ctx: Context): void {
    for (const other of pathsAbove(ctx.path)) {
      if (other === path) continue;
      setCookie(ctx, loginCookie, '', { path: other, secure: isSecure, maxAgeSeconds: 0 });
    }
  }

  function setSessionId(ctx: Context, sessionId: string | undefined): void {
    for (const name of sessionIdCookies) {
      const attributes = { path: basePath, secure: isSecure };
      if (sessionId === undefined) setCookie(ctx, name, '', { ...attributes, maxAgeSeconds: 0 });
      else setCookie(ctx, name, sessionId, attributes);
    }
  }

  /** A new key: one that was planted before a login must not become one, nor one that was stolen gain power. */
  async function renew(ctx: Context, sessionId: string): Promise<void> {
    ctx['session'] = { sessionId, authenticatedAt: options.now() };
    await (ctx['session'] as { regenerate(): Promise<void> }).regenerate();
  }

  const readLogin: Middleware = async (ctx, next) => {
    // Koa believes that the connection is plain http when TLS ends at a proxy in front of the hub.
    ctx.cookies.secure = isSecure;
    const { sessionId } = (ctx['session'] ?? {}) as StoredSession;
    const found = sessionId === undefined ? undefined : await logins.find(sessionId);
    const isLogout = ctx.path === options.logoutPath;
    const login = found === undefined || isLogout ? found : await options.revalidate(found);
    ctx.state['login'] = login;
    if (login !== undefined) {
      noteCallerName(ctx, login.user.name);
      identifyActor(actorOf(login));
      const { cookie } = ctx.req.headers;
      const isComplete = sessionIdCookies.every(
        (name) => cookieValues(cookie, name)[0] === sessionId,
      );
      if (!isComplete) setSessionId(ctx, sessionId);
    }
    await next();
  };

  /** Most calls of the API are by token: no session has to be made up for those. */
  function canHaveSession({ path, req }: Context): boolean {
    return !path.startsWith(apiPath) || cookieValues(req.headers.cookie, loginCookie).length > 0;
  }

  return {
    middleware: (ctx, next) =>
      canHaveSession(ctx) ? koaSession(ctx, () => readLogin(ctx, next)) : next(),

    async begin(ctx, start) {
      const former = (ctx['session'] as StoredSession | null)?.sessionId;
      if (former !== undefined) await logins.end(former);
      const session = await logins.start(start);
      await renew(ctx, session.sessionId);
      setSessionId(ctx, session.sessionId);
      ctx.state['login'] = await logins.find(session.sessionId);
    },

    async confirm(ctx) {
      const { sessionId } = (ctx['session'] ?? {}) as StoredSession;
      if (sessionId !== undefined) await renew(ctx, sessionId);
    },

    async end(ctx) {
      const sessionId = (ctx['session'] as StoredSession | null)?.sessionId;
      if (sessionId !== undefined) await logins.end(sessionId);
      ctx['session'] = null;
      ctx.state['login'] = undefined;
      setSessionId(ctx, undefined);
    },
  };
}

function actorOf({ user, session }: Login): Actor {
  return { kind: 'user', name: user.name, sessionId: session.sessionId };
}

const deepestPath = 8;

/** Every path whose cookies a browser sends with a request for this one (RFC 6265 §5.1.4). */
function pathsAbove(path: string): string[] {
  const paths = ['/'];
  let above = '';
  for (const segment of path.split('/').slice(1, deepestPath)) {
    // A path that would end the attribute cannot be named in it.
    if (segment === '' || /[;,\s]/.test(segment)) break;
    above += `/${segment}`;
    paths.push(above, `${above}/`);
  }
  return paths;
}
