import type { ScopeCatalogue } from '../../rbac/scope-definitions.ts';
import { describeScopes, type ScopeDescription } from '../../rbac/scope-descriptions.ts';
import type { Client } from '../clients/client.ts';
import type { AuthorizationResponseTarget } from '../oauth-error-response.ts';

/** What the consent page shows. */
export interface ConsentView {
  readonly clientName: string;
  readonly clientKind: Client['kind'];
  /** Whose server it is, when the client is one. */
  readonly ownerUserName: string | undefined;
  /** Where the browser goes afterwards. */
  readonly redirectHost: string;
  /** The same with its scheme, for the `form-action` of the page's Content-Security-Policy. */
  readonly redirectOrigin: string;
  /** For display. */
  readonly scopes: readonly ScopeDescription[];
  /** What the form sends back as `scopes`, one field each: the person grants no more than was shown. */
  readonly grantedScopes: readonly string[];
}

/** Describes an authorization request for the person who is asked to allow it. */
export function consentView({
  client,
  target,
  scopes,
  catalogue,
}: {
  readonly client: Client;
  readonly target: AuthorizationResponseTarget;
  readonly scopes: readonly string[];
  readonly catalogue: ScopeCatalogue;
}): ConsentView {
  const { protocol, host } = new URL(target.redirectUri);
  return {
    clientName: client.name,
    clientKind: client.kind,
    ownerUserName: client.ownerUserName,
    redirectHost: host,
    redirectOrigin: host === '' ? protocol : `${protocol}//${host}`,
    scopes: describeScopes(scopes, catalogue),
    grantedScopes: scopes,
  };
}
