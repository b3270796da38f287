import type { Phrase } from '../../../platform/texts/text.ts';
import type { OAuthClientIdentity } from '../../rbac/owner.ts';
import type { SigningAlgorithm } from '../keys/signing-key-store.ts';
import type { ClientHosts } from './client-request.ts';

/** Ways in which a client may get tokens beside a code, as the configuration names them. */
export type ClientGrant = 'refresh' | 'client_credentials' | 'device' | 'token_exchange';

/** What a client may do because its configuration says so. */
export interface ClientAbilities {
  readonly grants?: readonly ClientGrant[] | undefined;
  /** Whether users may let its grants last beyond their login. */
  readonly mayOutliveLogin?: boolean | undefined;
  /** Whether it has to push its authorization requests (RFC 9126 §6). */
  readonly requiresPush?: boolean | undefined;
  /** Public keys of its assertions (RFC 7517 §5), or where they are. */
  readonly jwks?: { readonly keys: readonly object[] } | undefined;
  readonly jwksUri?: string | undefined;
  /** Where it is told that a login has ended (OpenID Connect Back-Channel Logout 1.0 §2.2). */
  readonly logoutUrl?: string | undefined;
  /** Where it may send browsers after a logout, written as redirect URIs are (RP-Initiated Logout 1.0 §3.1). */
  readonly postLogoutUris?: readonly string[] | undefined;
}

/** A service, a user's server or an agent as OAuth client of the hub (RFC 6749 §2). */
export interface Client extends ClientAbilities {
  /** `service-<name>` unless configured otherwise, `hub-user-<name>`, or the URL of an agent's document. */
  readonly clientId: string;
  readonly kind: 'service' | 'server' | 'agent';
  /** Display name: of the service, of the server with its user's name, or what an agent calls itself. */
  readonly name: Phrase;
  /** Where browsers reach the client, as far as it is behind the gateway. */
  readonly origin: string;
  /** As registered, at least one: absolute URIs, or paths on `origin`. */
  readonly redirectUris: readonly string[];
  /** Whether it can keep no secret (RFC 6749 §2.1), and proves by PKCE that it is the one that asked. */
  readonly isPublic: boolean;
  /** Scopes the client may ask a user for, beside identity and access to itself. */
  readonly allowedScopes: readonly string[];
  /** What a user must hold to use the client at all; undefined where every user may, and of an agent until it names what it wants. */
  readonly accessScope: string | undefined;
  readonly skipsConsent: boolean;
  /** Where the addresses that it names may be; anywhere unless given. */
  readonly hosts?: ClientHosts | undefined;
  /** `RS256` unless given. */
  readonly idTokenAlgorithm?: SigningAlgorithm | undefined;
  /** Whose server it is; undefined for a service. */
  readonly ownerUserName?: string;
  /** Id of the server; undefined for a service. */
  readonly serverId?: string;
  readonly identity: OAuthClientIdentity;
}
