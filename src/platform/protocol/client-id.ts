/** A user's server; the default one has the empty name. */
export interface ServerName {
  readonly userName: string;
  readonly serverName: string;
}

const prefix = 'hub-user-';

/** The OAuth client id of a service, unless its configuration gives another. */
export function serviceClientId(serviceName: string): string {
  return `service-${serviceName}`;
}

/**
 * The OAuth client id of a user's server, and the one place that decides it: `hub-user-<user>` for the
 * default server, `hub-user-<user>-<server>` for a named one.
 *
 * Names stay as they are except for characters outside `A-Z a-z 0-9 - . _ ~`, which are
 * percent-encoded; in the id of a named server the hyphens of the user's name are too, so that the
 * first hyphen ends it. What remains is one ambiguity: the default server of a user `a-b` and the
 * server `b` of a user `a`. The first has the id where that user exists, and the second may not exist
 * beside it: see `readServerClientId` and `UserServers`.
 */
export function serverClientId(userName: string, serverName: string): string {
  if (serverName === '') return prefix + encodeName(userName);
  return `${prefix}${encodeName(userName).replaceAll('-', '%2D')}-${encodeName(serverName)}`;
}

/**
 * The servers that a client id may name, at most two: a default server before a named one. Empty when
 * `serverClientId` gives no server that id.
 */
export function readServerClientId(clientId: string): readonly ServerName[] {
  if (!clientId.startsWith(prefix)) return [];
  const rest = clientId.slice(prefix.length);
  const readings = [{ user: rest, server: '' }];
  const hyphenAt = rest.indexOf('-');
  if (hyphenAt > 0 && hyphenAt < rest.length - 1) {
    readings.push({ user: rest.slice(0, hyphenAt), server: rest.slice(hyphenAt + 1) });
  }
  return readings.flatMap(({ user, server }) => {
    const userName = decodeName(user);
    const serverName = decodeName(server);
    if (userName === undefined || userName === '' || serverName === undefined) return [];
    // Only the canonical spelling counts: one server, one client id.
    return serverClientId(userName, serverName) === clientId ? [{ userName, serverName }] : [];
  });
}

function encodeName(name: string): string {
  return encodeURIComponent(name).replaceAll(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

function decodeName(text: string): string | undefined {
  try {
    // Names are kept in NFC; another spelling of one would be a second id.
    return decodeURIComponent(text).normalize('NFC');
  } catch {
    return undefined; // Not percent-encoded text, so no name of ours.
  }
}

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
