import type { Answered, RequestLike } from '../../client/decision.ts';
import type { Route } from '../proxy/route.ts';

/** A request that may pass, and what the upstream is told of its visitor. */
export interface Authorized {
  readonly kind: 'authorized';
  /** Names and values in turn. */
  readonly headers: readonly string[];
  /** Undefined for a program that the server itself has to refuse. */
  readonly userName: string | undefined;
  /** Of the user; empty where the server guard let someone in. */
  readonly groups: readonly string[];
  readonly sessionId: string | undefined;
  readonly accessTokenId: string | undefined;
  /** When the visitor's token ends, in milliseconds since 1970. */
  readonly expiresAtMs: number | undefined;
  /** Whether the request's own credentials are the hub's and must not reach the upstream. */
  readonly stripAuthorization: boolean;
}

export type GateDecision = Authorized | Answered;

/** Decides who may pass a route. */
export interface AccessPolicy {
  /** The decision, when it is known already: for most requests of a browser that is logged in. */
  known(route: Route, request: RequestLike): Authorized | undefined;
  decide(route: Route, request: RequestLike): Promise<GateDecision>;
}
