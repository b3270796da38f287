import type { Keyv } from 'keyv';
import type { Context } from 'koa';
import { equalSecrets, hashSecret } from '../../crypto/hash.ts';
import type { Sealer } from '../../crypto/sealer.ts';
import { cookieNames, cookieValues } from '../../http/cookies.ts';
import { setCookie } from '../../http/set-cookie.ts';

/** A login that was begun in this browser and is under way at a provider. */
export interface AuthorizationRequestState {
  readonly authenticator: string;
  /** What the browser brings back; nobody else knows it. */
  readonly state: string;
  /** What the authenticator needs to complete the login. */
  readonly pending: Readonly<Record<string, string>>;
  /** Where the login leads, already checked. */
  readonly next?: string | undefined;
  /** Set when an identity is being linked: the session of the person it will belong to. */
  readonly linkToSession?: string | undefined;
}

/** The logins under way, each in a cookie of its own, so that several tabs do not disturb each other. */
export interface AuthorizationRequestStates {
  add(ctx: Context, login: AuthorizationRequestState): void;
  /** Takes the login of a state out of the browser: it works once and in that browser only. */
  take(ctx: Context, state: string): Promise<AuthorizationRequestState | 'unknown' | 'used'>;
}

interface SealedLogin extends AuthorizationRequestState {
  readonly startedAt: number;
}

const cookiePrefix = 'hub-oauth-state-';
const lifetimeMs = 600_000;
const mostPending = 8;
/** All of them together must leave room for other cookies in the header block of a request. */
const mostPendingBytes = 6_000;
/** Browsers drop a cookie of more than 4096 bytes. */
const longestCookie = 3_800;

/** Creates the pending logins: sealed cookies, and the states that have been used. */
export function createAuthorizationRequestStates(deps: {
  readonly sealer: Sealer;
  /** Used states by their hash, until they would have expired anyway. */
  readonly used: Keyv<true>;
  readonly path: string;
  readonly isSecure: boolean;
}): AuthorizationRequestStates {
  const { sealer, used, path, isSecure } = deps;
  const beingTaken = new Set<string>();

  function remove(ctx: Context, name: string): void {
    setCookie(ctx, name, '', { path, secure: isSecure, maxAgeSeconds: 0 });
  }

  /** A cookie of the same name may have been tossed in: only what the hub sealed counts. */
  function read(ctx: Context, name: string): { login: SealedLogin; byteCount: number } | undefined {
    for (const value of cookieValues(ctx.req.headers.cookie, name).slice(0, 4)) {
      const opened = sealer.open(value, name);
      if (opened === undefined) continue;
      const login = JSON.parse(opened) as SealedLogin;
      if (login.startedAt + lifetimeMs > Date.now()) {
        return { login, byteCount: name.length + value.length };
      }
    }
    return undefined;
  }

  function makeRoom(ctx: Context, neededBytes: number): void {
    const kept: { name: string; startedAt: number; byteCount: number }[] = [];
    for (const name of cookieNames(ctx.req.headers.cookie, cookiePrefix).slice(0, 50)) {
      const found = read(ctx, name);
      if (found === undefined) remove(ctx, name);
      else kept.push({ name, startedAt: found.login.startedAt, byteCount: found.byteCount });
    }
    kept.sort((left, right) => left.startedAt - right.startedAt);
    let byteCount = neededBytes + kept.reduce((sum, cookie) => sum + cookie.byteCount, 0);
    while (kept.length >= mostPending || (byteCount > mostPendingBytes && kept.length > 0)) {
      const oldest = kept.shift();
      if (oldest === undefined) return;
      byteCount -= oldest.byteCount;
      remove(ctx, oldest.name);
    }
  }

  return {
    add(ctx, login) {
      const name = cookieName(login.state);
      const sealed = (kept: AuthorizationRequestState) =>
        sealer.seal(JSON.stringify({ ...kept, startedAt: Date.now() } satisfies SealedLogin), name);
      let value = sealed(login);
      // Better a login that lands on the start page than one whose cookie the browser drops.
      if (value.length > longestCookie) value = sealed({ ...login, next: undefined });
      makeRoom(ctx, name.length + value.length);
      setCookie(ctx, name, value, { path, secure: isSecure, maxAgeSeconds: lifetimeMs / 1000 });
    },

    async take(ctx, state) {
      const name = cookieName(state);
      const stateHash = hashSecret(state);
      // The state is single-use even when the browser keeps its cookie.
      if (beingTaken.has(stateHash)) return 'used';
      beingTaken.add(stateHash);
      try {
        const found = read(ctx, name);
        const isOurs = found !== undefined && equalSecrets(found.login.state, state);
        if ((await used.get(stateHash)) === true) return 'used';
        if (!isOurs) return 'unknown';
        await used.set(stateHash, true, lifetimeMs + 60_000);
        remove(ctx, name);
        return found.login;
      } finally {
        beingTaken.delete(stateHash);
      }
    },
  };
}

function cookieName(state: string): string {
  return cookiePrefix + hashSecret(state).slice(0, 16);
}
