import type { UserModel } from './hub-api.ts';

/** Who may use a service. */
export interface AccessRule {
  readonly oauthScopes: readonly string[];
  readonly hubScopes: readonly string[] | undefined;
  readonly hubUsers: ReadonlySet<string> | undefined;
  readonly hubGroups: ReadonlySet<string> | undefined;
}

/**
 * Whether the rule allows a user (specification: Access control, 1 to 5). Scopes decide; users and
 * groups only where a service names them and defines no `hub_scopes`.
 */
export function isAllowed(user: UserModel, rule: AccessRule): boolean {
  const { hubScopes, hubUsers, hubGroups, oauthScopes } = rule;
  if (hubScopes !== undefined) return holdsAny(user, hubScopes);
  if (hubUsers === undefined && hubGroups === undefined) return holdsAny(user, oauthScopes);
  // A service may bear the name of a user: it is another owner.
  if (user.kind === 'service') return false;
  return hubUsers?.has(user.name) === true || isMemberOfAny(user, hubGroups);
}

/** Whether a user holds one of the scopes now. */
export function holdsAny(user: UserModel, required: readonly string[]): boolean {
  const held = (user.scopes ?? []).map(parse);
  return required.map(parse).some((scope) => held.some((other) => covers(other, scope)));
}

function isMemberOfAny(user: UserModel, groups: ReadonlySet<string> | undefined): boolean {
  return groups !== undefined && (user.groups ?? []).some((group) => groups.has(group));
}

interface ParsedScope {
  readonly name: string;
  /** `user`, `group`, `server` or `service`; empty without a filter. */
  readonly kind: string;
  readonly value: string;
}

function parse(scope: string): ParsedScope {
  const [base = '', filter] = splitOnce(scope, '!');
  const name = base === 'access:users:servers' ? 'access:servers' : base;
  if (filter === undefined) return { name, kind: '', value: '' };
  const [kind = '', value = ''] = splitOnce(filter, '=');
  const isDefaultServer = kind === 'server' && value !== '' && !value.includes('/');
  return { name, kind, value: isDefaultServer ? `${value}/` : value };
}

/** Scopes of a user that hold for the members of a group. */
export function hasGroupScopes({ scopes = [] }: UserModel): boolean {
  return scopes.some((scope) => scope.includes('!group='));
}

/**
 * The user, with what scopes for groups mean for the owner of this service: `!user=bob` beside
 * `!group=x` where the owner `bob` is a member. Who else is one only the hub knows.
 */
export function withScopesForOwner(user: UserModel, owner: UserModel): UserModel {
  if (owner.kind === 'service') return user;
  const groups = new Set(owner.groups);
  const resolved = (user.scopes ?? []).flatMap((scope) => {
    const [name, group] = splitOnce(scope, '!group=');
    return group !== undefined && groups.has(group) ? [`${name}!user=${owner.name}`] : [];
  });
  return { ...user, scopes: [...(user.scopes ?? []), ...resolved] };
}

/** Group filters cover only themselves; see `withScopesForOwner`. */
function covers(held: ParsedScope, required: ParsedScope): boolean {
  if (held.name !== required.name) return false;
  if (held.kind === '') return true;
  // An unresolved self-reference such as `!user` names no one.
  if (held.value === '') return false;
  if (held.kind === required.kind && held.value === required.value) return true;
  return (
    required.kind === 'server' &&
    held.kind === 'user' &&
    required.value.startsWith(`${held.value}/`)
  );
}

function splitOnce(text: string, separator: string): [string, string?] {
  const at = text.indexOf(separator);
  return at === -1 ? [text] : [text.slice(0, at), text.slice(at + separator.length)];
}
