/** What a visitor may get access to. A server without a name is the user's default one. */
export type AccessTarget =
  | { readonly kind: 'service'; readonly name: string }
  | { readonly kind: 'server'; readonly userName: string; readonly serverName: string };

/** The narrowest scope that gives access to a service or a user's server. */
export function accessScopeFor(target: AccessTarget): string {
  return target.kind === 'service'
    ? `access:services!service=${target.name}`
    : `access:servers!server=${target.userName}/${target.serverName}`;
}

/** Every scope that gives access to a service or a user's server, but for those of groups. */
export function accessScopesFor(target: AccessTarget): readonly string[] {
  return target.kind === 'service'
    ? ['access:services', accessScopeFor(target)]
    : [accessScopeFor(target), `access:servers!user=${target.userName}`, 'access:servers'];
}
