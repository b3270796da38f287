import { isPlainName, readableHash, stubOf } from './host-label.ts';

/** Leaves room for a prefix in the 63 characters of a DNS label (RFC 1123 §2.1). */
const maxObjectNameLength = 50;

/**
 * The name under which an engine keeps what belongs to a user's server, such as a container: a DNS label
 * that no other user or server of this hub has. A plain user name stays as it is for the default
 * server; `---` parts it from the name of a named one. No user or server name holds two hyphens in a row.
 */
export function objectName(userName: string, serverName: string): string {
  const user = isPlainName(userName)
    ? userName
    : `u-${stubOf(userName)}--${readableHash(userName)}`;
  const name = serverName === '' ? user : `${user}---${serverName}`;
  if (name.length <= maxObjectNameLength) return name;
  // No server name holds a slash, so that the two cannot be parted otherwise.
  return `${stubOf(userName)}----${readableHash(`${serverName}/${userName}`)}`;
}
