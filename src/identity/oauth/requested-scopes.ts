import { type AccessTarget, accessScopeFor } from '../../platform/protocol/client-id.ts';
import { formatScopeList } from '../../platform/protocol/scope-list.ts';
import { excessScopes } from '../rbac/access-check.ts';
import { intersectScopes } from '../rbac/intersect-scopes.ts';
import type { Membership } from '../rbac/membership.ts';
import type { Owner } from '../rbac/owner.ts';
import { expandScopes, resolveScopes, type ScopeSet } from '../rbac/scope.ts';
import type { ScopeCatalogue } from '../rbac/scope-definitions.ts';
import type { Client } from './clients/client.ts';
import { OAuthError } from './oauth-error.ts';
import {
  isOpenidGrant,
  openidGrants,
  openidScope,
  openidScopes,
  openidScopesOf,
  tellsInfo,
  userInfoScope,
} from './openid/claims.ts';

/** Without these a client could not even tell who logged in, so every grant holds them. */
export const identifyScopes = ['read:users:name!user', 'read:users:groups!user'] as const;

/** What clients ask for that only want to know who it is, such as those of JupyterHub before 2.0: part of every grant. */
export const identifyScope = 'identify';

/** Lets a grant last beyond the login (OpenID Connect Core 1.0 §11), for clients that may ask that. */
export const offlineScope = 'offline_access';

/** Who asks, for whom, and what that user may do at this moment. */
export interface ScopeContext {
  readonly client: Client;
  readonly owner: Owner;
  /** Everything the user holds, expanded. */
  readonly grantedScopes: ScopeSet;
  readonly membership: Membership;
  readonly catalogue: ScopeCatalogue;
  /** What alone the token is to be good for (RFC 8707). */
  readonly resource?: AccessTarget | undefined;
}

/** Looks up the scopes of a role by its name. */
export type FindRole = (
  name: string,
) => Promise<{ readonly scopes: readonly string[] } | undefined>;

/**
 * Resolves the `scope` parameter into what the client gets (RFC 6749 §3.3): requested, allowed to the
 * client and held by the user. Asking for more than the client is allowed fails with `invalid_scope`;
 * what the user does not hold is left out, and the token response says so. With `openid` scopes that are not known are
 * passed over (OpenID Connect Core 1.0 §3.1.2.1); `claims` are single ones that are asked for (§5.5).
 */
export async function resolveRequestedScopes(
  requested: string | undefined,
  context: ScopeContext,
  findRole: FindRole,
  claims: readonly string[] = [],
): Promise<readonly string[]> {
  const required = requiredScopes(context.client);
  const tokens = requested === undefined ? [] : requireScopeTokens(requested);
  const isOpenid = tokens.includes(openidScope);
  const names =
    requested === undefined
      ? context.client.allowedScopes
      : tokens
          .filter((name) => name !== identifyScope && name !== offlineScope)
          .filter((name) => !(isOpenid && openidScopes.includes(name)))
          .map((name) => readScopeToken(name, context.client));
  const { resource } = context;
  const access = resource === undefined ? [] : [accessScopeFor(resource)];
  if (!access.every((scope) => isAllowed(scope, context)))
    throw new OAuthError('invalid_target', 'The client may not ask for this resource.');
  const optional = [...access, ...(await replaceRoleNames(names, context, findRole))];
  if (requested !== undefined) requireAllowedScopes(optional, context, { isOpenid });

  const granted = new Set<string>(required);
  const isOffline = tokens.includes(offlineScope);
  if (isOffline && context.client.mayOutliveLogin === true) granted.add(offlineScope);
  for (const scope of optional) {
    for (const part of grantedPartOf(scope, context)) granted.add(part);
  }
  const bound = (scopes: readonly string[]) =>
    resource === undefined ? scopes : boundTo(resource, scopes);
  if (!isOpenid) return bound([...granted]);
  const info = [...grantedPartOf(userInfoScope, context)];
  const disclosed = openidGrants(tokens, claims, info.length > 0);
  return bound([...granted, ...(tellsInfo(disclosed) ? info : []), ...disclosed]);
}

/**
 * The part of a grant that is good at one service or server and nowhere else (RFC 8707 §2.2), but says who its user is.
 * Throws `invalid_target` where the grant does not give access there.
 */
export function boundTo(resource: AccessTarget, granted: readonly string[]): readonly string[] {
  const access = accessScopeFor(resource);
  if (!granted.includes(access))
    throw new OAuthError('invalid_target', 'The grant does not give access to this resource.');
  const kept = [access, ...identifyScopes, userInfoScope, offlineScope];
  return granted.filter((scope) => kept.includes(scope) || isOpenidGrant(scope));
}

/**
 * The scopes that the answer with a token names (RFC 6749 §5.1): those that were requested, as far as they were granted.
 * What belongs to every grant is left out then, since libraries take any other list than they asked for as a refusal. A
 * client of OpenID Connect gets those of the protocol by their names, without what these stand for here.
 */
export function scopesToTell(
  client: Client,
  granted: readonly string[],
  requested?: string,
): readonly string[] {
  const isOpenid = granted.includes(openidScope);
  if (!isOpenid && requested === undefined) return granted;
  const asked = requested?.split(' ') ?? [];
  const implied = [...requiredScopes(client), ...(isOpenid ? [userInfoScope] : [])];
  const listed = new Set([
    ...asked.filter((name) => name === identifyScope),
    ...(isOpenid ? openidScopesOf(granted) : []),
    ...granted.filter(
      (scope) =>
        asked.includes(formatScopeList([scope])) ||
        !(isOpenidGrant(scope) || implied.includes(scope)),
    ),
  ]);
  return listed.size === 0 ? granted : [...listed];
}

/** Scopes that belong to every grant of a client: identity and access to the client itself. */
export function requiredScopes(client: Client): readonly string[] {
  return [...identifyScopes, client.accessScope ?? []].flat();
}

/** Whether scopes granted earlier, all in all, cover those of a new request. */
export function coversScopes(
  earlier: readonly string[],
  scopes: readonly string[],
  context: ScopeContext,
): boolean {
  // `inherit` grows with its user; a list that equals it today is less than it.
  if (scopes.some((scope) => isOpenidGrant(scope) && !earlier.includes(scope))) return false;
  for (const unlike of ['inherit', offlineScope])
    if (scopes.includes(unlike) && !earlier.includes(unlike)) return false;
  return includesAll(expand(earlier, context), expand(scopes, context), context.membership);
}

/** `scope-token *( SP scope-token )`, each of %x21 / %x23-5B / %x5D-7E (RFC 6749 §3.3). */
function requireScopeTokens(scope: string): string[] {
  if (!/^[\x21\x23-\x5b\x5d-\x7e]+( [\x21\x23-\x5b\x5d-\x7e]+)*$/.test(scope)) {
    throw new OAuthError('invalid_scope', 'The parameter scope is malformed.');
  }
  return scope.split(' ');
}

/**
 * The scope that a token stands for. A name in it may hold what no scope token may, and comes
 * percent-encoded then; only what the client may have anyway is recognised in that form.
 */
function readScopeToken(token: string, client: Client): string {
  const known = [...requiredScopes(client), ...client.allowedScopes];
  return known.find((scope) => formatScopeList([scope]) === token) ?? token;
}

async function replaceRoleNames(
  names: readonly string[],
  context: ScopeContext,
  findRole: FindRole,
): Promise<readonly string[]> {
  const scopes = new Set<string>();
  for (const name of names) {
    const isScope = resolveScopes([name], expansion(context)).unresolved.length === 0;
    const role = isScope ? undefined : await findRole(name);
    for (const scope of role?.scopes ?? [name]) scopes.add(scope);
  }
  return [...scopes];
}

/** Any scope outside what the client is allowed makes the whole request invalid. */
function requireAllowedScopes(
  scopes: readonly string[],
  context: ScopeContext,
  { isOpenid }: { readonly isOpenid: boolean },
): void {
  for (const scope of scopes) {
    if (resolveScopes([scope], expansion(context)).unresolved.length > 0) {
      if (isOpenid) continue;
      throw new OAuthError('invalid_scope', `The scope ${scope} is unknown or malformed.`);
    }
    if (!isAllowed(scope, context))
      throw new OAuthError('invalid_scope', `The client is not allowed the scope ${scope}.`);
  }
}

/** `inherit` among what a client is allowed allows `inherit`, and nothing that is not listed. */
function isAllowed(scope: string, context: ScopeContext): boolean {
  const { client, membership } = context;
  const allowed = [...client.allowedScopes, ...requiredScopes(client)];
  if (allowed.includes(scope)) return true;
  const others = expand(
    allowed.filter((each) => each !== 'inherit'),
    context,
  );
  return scope !== 'inherit' && includesAll(others, expand([scope], context), membership);
}

/** Whether scopes are unknown or go further than what their owner holds. */
export function exceeds(scopes: readonly string[], context: ScopeContext): boolean {
  const { scopes: wanted, unresolved } = resolveScopes(scopes, expansion(context));
  return unresolved.length > 0 || !includesAll(context.grantedScopes, wanted, context.membership);
}

/** The scope itself when the user holds all of it, else the parts of it that the user holds. */
function grantedPartOf(scope: string, context: ScopeContext): Iterable<string> {
  const wanted = expand([scope], context);
  if (wanted.size > 0 && includesAll(context.grantedScopes, wanted, context.membership))
    return [scope];
  return intersectScopes(wanted, context.grantedScopes, context.membership);
}

function includesAll(grantedScopes: ScopeSet, wanted: ScopeSet, membership: Membership): boolean {
  return excessScopes(grantedScopes, wanted, membership).length === 0;
}

function expand(scopes: readonly string[], context: ScopeContext): ScopeSet {
  return expandScopes(scopes, expansion(context));
}

function expansion({ catalogue, owner, client, grantedScopes }: ScopeContext) {
  return { catalogue, owner, client: client.identity, inherited: grantedScopes };
}
