/** A user's server; the default one has the empty name. */
export interface ServerName {
  readonly userName: string;
  readonly serverName: string;
}

const prefix = 'hub-user-';

/** Stands between user and server. It never occurs inside an encoded name. */
const separator = '--';

/**
 * The OAuth client id of a user's server, and the one place that decides it: `hub-user-<user>` for the
 * default server, `hub-user-<user>--<server>` for a named one.
 *
 * One hyphen between the two would give the default server of a user `a-b` and the server `b` of a
 * user `a` the same id, and with it each other's visitors. Names stay as they are except for
 * characters outside `A-Z a-z 0-9 - . _ ~` and for hyphens that stand at an end or beside another
 * hyphen: those are percent-encoded, so two hyphens can only be the separator.
 */
export function serverClientId(userName: string, serverName: string): string {
  const user = prefix + encodeName(userName);
  return serverName === '' ? user : user + separator + encodeName(serverName);
}

/** The server that a client id names, or undefined when `serverClientId` gives no server that id. */
export function parseServerClientId(clientId: string): ServerName | undefined {
  if (!clientId.startsWith(prefix)) return undefined;
  const [user = '', server = '', ...rest] = clientId.slice(prefix.length).split(separator);
  if (rest.length > 0) return undefined;
  const userName = decodeName(user);
  const serverName = decodeName(server);
  if (userName === undefined || userName === '' || serverName === undefined) return undefined;
  // Only the canonical spelling counts: one server, one client id.
  return serverClientId(userName, serverName) === clientId ? { userName, serverName } : undefined;
}

function encodeName(name: string): string {
  return encodeURIComponent(name)
    .replaceAll(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll(/^-|-$|(?<=-)-/g, '%2D');
}

function decodeName(text: string): string | undefined {
  try {
    // Names are kept in NFC; another spelling of one would be a second id.
    return decodeURIComponent(text).normalize('NFC');
  } catch {
    return undefined; // Not percent-encoded text, so no name of ours.
  }
}
