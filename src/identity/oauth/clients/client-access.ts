import { HubError } from '../../../platform/errors.ts';
import { type AccessTarget, accessScopeFor } from '../../../platform/protocol/client-id.ts';
import { text } from '../../../platform/texts/text.ts';
import { checkAccess } from '../../rbac/access-check.ts';
import type { Authorizer } from '../../rbac/authorizer.ts';
import type { Membership } from '../../rbac/membership.ts';
import { emptyMembership } from '../../rbac/membership.ts';
import type { ScopeSet } from '../../rbac/scope.ts';
import { OAuthError } from '../oauth-error.ts';
import {
  type FindRole,
  requiredScopes,
  resolveRequestedScopes,
  type ScopeContext,
} from '../requested-scopes.ts';
import type { Client, ClientGrant } from './client.ts';

/** What a user holds at the moment, where that includes access to a client; undefined where it does not. */
export async function scopesForClient(
  client: Client,
  userName: string,
  authorizer: Pick<Authorizer, 'scopesOfOwner' | 'membership'>,
): Promise<{ readonly grantedScopes: ScopeSet; readonly membership: Membership } | undefined> {
  const [grantedScopes, membership] = await Promise.all([
    authorizer.scopesOfOwner({ kind: 'user', name: userName }),
    authorizer.membership(),
  ]);
  const { accessScope } = client;
  // What an agent got is worth what its user may still do.
  const mayUse =
    accessScope === undefined ||
    checkAccess(grantedScopes, accessScope, undefined, membership) === 'granted';
  return mayUse ? { grantedScopes, membership } : undefined;
}

/** What decides what a client gets of a user. */
export interface ScopeDecision {
  readonly authorizer: Pick<Authorizer, 'scopesOfOwner' | 'membership' | 'catalogue'>;
  readonly findRole: FindRole;
}

/**
 * What a client would get of a user by an authorization request. Throws `forbidden` for a user who may not use it, and
 * OAuthError for a scope that it may not ask for.
 */
export async function resolveClientScopes(
  asking: Client,
  userName: string,
  asked: {
    readonly scope: string | undefined;
    readonly claims?: readonly string[] | undefined;
    readonly resource?: AccessTarget | undefined;
  },
  { authorizer, findRole }: ScopeDecision,
): Promise<{ readonly scopes: readonly string[]; readonly scopeContext: ScopeContext }> {
  const client = withResource(asking, asked.resource);
  const held = await scopesForClient(client, userName, authorizer);
  if (held === undefined) {
    throw new HubError('forbidden', text`You do not have permission to access ${client.name}.`, {
      hint: text`Ask your administrator for access.`,
    });
  }
  const { catalogue } = authorizer;
  const owner = { kind: 'user', name: userName } as const;
  const scopeContext = { client, owner, ...held, catalogue, resource: asked.resource };
  const scopes = await resolveRequestedScopes(asked.scope, scopeContext, findRole, asked.claims);
  return { scopes, scopeContext };
}

/**
 * Throws OAuthError for a scope that a client may not ask any user for. What its user holds of that is known once there
 * is one.
 */
export async function requireAllowedRequest(
  client: Client,
  scope: string | undefined,
  { authorizer: { catalogue }, findRole }: ScopeDecision,
): Promise<void> {
  const owner = { kind: 'user', name: '*' } as const;
  const held = { grantedScopes: new Set<string>(), membership: emptyMembership };
  await resolveRequestedScopes(scope, { client, owner, catalogue, ...held }, findRole);
}

/** An agent is a client of whatever it asks for; there is nothing else of the hub that it could be let into. */
function withResource(client: Client, resource: AccessTarget | undefined): Client {
  if (client.kind !== 'agent') return client;
  if (resource === undefined)
    throw new OAuthError('invalid_target', 'The parameter resource does not name what it is for.');
  return { ...client, accessScope: accessScopeFor(resource) };
}

/** Leaves out what the person did not see: roles may have grown since the page was shown. */
export function keepShown(
  scopes: readonly string[],
  shown: readonly string[],
  client: Client,
): readonly string[] {
  if (shown.length === 0) return scopes;
  const kept = new Set([...shown, ...requiredScopes(client)]);
  return scopes.filter((scope) => kept.has(scope));
}

/** Throws `unauthorized_client` unless a client is configured for a way to tokens (RFC 6749 §5.2). */
export function requireGrant(client: Client, grant: ClientGrant): void {
  if (client.grants?.includes(grant) === true) return;
  throw new OAuthError('unauthorized_client', 'The client may not use this grant_type.');
}
