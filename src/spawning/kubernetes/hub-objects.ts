import { createHash } from 'node:crypto';
import { objectName } from '../../platform/protocol/object-name.ts';
import type { ServerIdentity } from '../../plugin/host/spawn-request.ts';

/** Labels by which the hub finds its objects. */
export const hubLabels = {
  managedBy: 'app.kubernetes.io/managed-by',
  instance: 'hub/instance',
  serverId: 'hub/server-id',
  user: 'hub/user',
} as const;

/** Annotations with what a label cannot hold. */
const hubAnnotations = { userName: 'hub/user-name', serverName: 'hub/server-name' } as const;

/** The name of a user where Kubernetes takes no other characters; no two users share one. */
export function userLabelOf(userName: string): string {
  return objectName(userName, '');
}

/** Ids of servers are UUIDs; what could be no value of a label is replaced by its hash. */
export function serverLabelOf(serverId: string): string {
  return /^[A-Za-z0-9]([\w.-]{0,61}[A-Za-z0-9])?$/.test(serverId) ? serverId : hashOf(serverId);
}

/** Labels of an object of one user at one hub. */
export function userLabels(hubId: string, userName: string): Record<string, string> {
  return {
    [hubLabels.managedBy]: 'hub',
    [hubLabels.instance]: hubId,
    [hubLabels.user]: userLabelOf(userName),
  };
}

/** Labels of an object of one server at one hub. */
export function serverLabels(
  hubId: string,
  { serverId, userName }: Pick<ServerIdentity, 'serverId' | 'userName'>,
): Record<string, string> {
  return { ...userLabels(hubId, userName), [hubLabels.serverId]: serverLabelOf(serverId) };
}

export function identityAnnotations({
  userName,
  serverName,
}: Pick<ServerIdentity, 'userName' | 'serverName'>): Record<string, string> {
  return { [hubAnnotations.userName]: userName, [hubAnnotations.serverName]: serverName };
}

/** Labels as a label selector. */
export function selectorOf(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(',');
}

/** Name of a server's pod. */
export function podNameOf(
  prefix: string,
  hubId: string,
  { objectName: name }: Pick<ServerIdentity, 'objectName'>,
): string {
  return `${prefix}-${hubId.slice(0, 8)}-${name}`;
}

/**
 * Name of the Secret with a server's environment. It goes by the id alone, so that it can be deleted without the
 * right to list Secrets, which would be the right to read all of them.
 */
export function secretNameOf(prefix: string, hubId: string, serverId: string): string {
  return `${prefix}-environment-${hashOf(`${hubId}/${serverId}`)}`;
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 32);
}
