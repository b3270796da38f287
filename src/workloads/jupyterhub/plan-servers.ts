import { serverNamePattern } from '../../platform/config/common-schema.ts';
import { hubCommand } from '../../platform/files/program-folder.ts';
import type { GivenVolume } from '../../plugin/host/spawn-request.ts';
import { claimWordOf } from '../../spawning/kubernetes/kubernetes-options.ts';
import type { OldServer } from './old-hub.ts';

/** A sentence for whoever moves: what is not as it was, and what to do about it. */
export interface ImportNote {
  readonly what: string;
  readonly why: string;
  readonly todo?: string;
}

export interface PlannedServer {
  readonly userName: string;
  readonly name: string;
  readonly displayName: string | undefined;
  readonly createdAt: number | undefined;
  readonly lastActivityAt: number | undefined;
}

export interface PlannedVolume extends GivenVolume {
  readonly userName: string;
}

/** By their old ids, the default ones too. */
export function planServers(
  old: readonly OldServer[],
  nameOfUser: ReadonlyMap<string, string>,
  changed: ImportNote[],
): ReadonlyMap<string, PlannedServer> {
  const planned = new Map<string, PlannedServer>();
  const taken = new Set(old.map(({ userId, name }) => `${userId} ${name}`));
  for (const { id, userId, name: formerName, displayName, startedAt, lastActivityAt } of old) {
    const userName = nameOfUser.get(userId);
    if (userName === undefined) continue;
    const base = serverNameLike(formerName);
    let name = base;
    if (name !== formerName) {
      for (let count = 2; taken.has(`${userId} ${name}`); count += 1) name = `${base}-${count}`;
      taken.add(`${userId} ${name}`);
      const why = 'names of servers have a-z, 0-9 and single hyphens';
      changed.push({ what: `server ${userName}/${formerName} → ${userName}/${name}`, why });
    }
    planned.set(id, {
      userName,
      name,
      displayName: displayName ?? (name === formerName ? undefined : formerName),
      createdAt: startedAt,
      lastActivityAt,
    });
  }
  return planned;
}

/** KubeSpawner gives a server one claim: it is the one of the configuration, if that has one. */
export function planVolumes(
  old: readonly OldServer[],
  servers: ReadonlyMap<string, PlannedServer>,
  { claims: [claim, another], left }: { claims: readonly string[]; left: ImportNote[] },
): PlannedVolume[] {
  const ofUser = claim?.includes('{username}') ?? false;
  return old.flatMap(({ id, claim: source }) => {
    const server = servers.get(id);
    if (server === undefined || source === undefined) return [];
    const { userName, name } = server;
    const isOne = claim !== undefined && another === undefined && !(ofUser && name !== '');
    if (isOne) return { userName, serverName: name, volume: claimWordOf(claim), source };
    left.push({
      what: `claim ${source} of the server ${userName}/${name}`,
      why: ofUser
        ? 'KubernetesSpawner.claims has one for all servers of a user'
        : 'it is not clear which of KubernetesSpawner.claims it is',
      todo: `choose it: ${hubCommand('user volume')} ${userName} --claim …`,
    });
    return [];
  });
}

/** A name that a server can have here. */
export function serverNameLike(name: string): string {
  if (name === '' || serverNamePattern.test(name)) return name;
  const plain = name
    .normalize('NFKD')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-');
  const lettered = plain.replace(/^-/, '').replace(/^(?![a-z])/, 's-');
  return lettered.slice(0, 26).replace(/-+$/, '');
}
