import { hashSecret } from '../../platform/crypto/hash.ts';
import type { Sealer } from '../../platform/crypto/sealer.ts';
import { createStateCookies, type PendingState } from '../../platform/http/state-cookies.ts';
import { externalLoginCookie } from '../../platform/protocol/cookie-names.ts';
import { type KeyvSpace, useOnce } from '../../platform/store/keyv-space.ts';

/** What the hub remembers of a browser that it sent to an external provider. `next` is checked already. */
export interface AuthorizationRequest extends PendingState {
  /** Name of the authenticator in the configuration. */
  readonly authenticator: string;
  /** What the authenticator needs to complete the login. */
  readonly pending: Readonly<Record<string, string>>;
  /** Set when an identity is being linked: the session of the user it will belong to. */
  readonly linkToSession?: string | undefined;
  /** Set when the user of a session is to show again who they are. */
  readonly confirmSession?: string | undefined;
  /** Key of the form that waits for that. */
  readonly pendingForm?: string | undefined;
}

/** The authorization requests under way, by their `state`: each works once, in the browser that began it. */
export interface AuthorizationRequestStates {
  /** Set-Cookie values that keep a request. */
  begin(
    cookieHeader: string | undefined,
    state: string,
    request: AuthorizationRequest,
  ): readonly string[];
  take(
    cookieHeader: string | undefined,
    state: string,
  ): Promise<
    | { readonly request: AuthorizationRequest; readonly setCookies: readonly string[] }
    | 'unknown'
    | 'used'
  >;
}

/** Longer than a request is kept in its cookie. */
const usedForMs = 660_000;

export function createAuthorizationRequestStates(deps: {
  readonly sealer: Sealer;
  /** Used states by their hash, until they would have expired anyway. */
  readonly used: Pick<KeyvSpace<true>, 'get' | 'update'>;
  /** Milliseconds since 1970, by a clock that all processes share. */
  readonly now: () => number;
  readonly path: string;
  readonly isSecure: boolean;
}): AuthorizationRequestStates {
  const { used, path, isSecure } = deps;
  const cookies = createStateCookies<AuthorizationRequest>(
    deps.sealer,
    externalLoginCookie,
    deps.now,
  );
  const attributes = { path, secure: isSecure };

  return {
    begin: (cookieHeader, state, request) =>
      cookies.begin(cookieHeader, state, request, attributes),

    async take(cookieHeader, state) {
      const stateHash = hashSecret(state);
      const request = cookies.find(cookieHeader, state);
      // The state is single-use even when the browser keeps its cookie.
      if (request === undefined) return (await used.get(stateHash)) === true ? 'used' : 'unknown';
      if (!(await useOnce(used, stateHash, usedForMs))) return 'used';
      return { request, setCookies: cookies.end(state, attributes) };
    },
  };
}
