import type { V1PersistentVolumeClaim } from '@kubernetes/client-node';
import { HubError } from '../../platform/errors.ts';
import { hubCommand } from '../../platform/files/program-folder.ts';
import { objectName } from '../../platform/protocol/object-name.ts';
import { text } from '../../platform/texts/text.ts';
import type { ServerIdentity, SpawnProgress } from '../../plugin/host/spawn-request.ts';
import { ApiRefusal, explainRefusal, isMissing } from './api-errors.ts';
import type { Cluster } from './cluster.ts';
import { hubLabels, identityAnnotations, serverLabels, userLabels } from './hub-objects.ts';
import { type ClaimOptions, claimWordOf, type KubernetesOptions } from './kubernetes-options.ts';
import type { ApiObject } from './resource-watch.ts';

/** Of making a claim one's own, while others change it. */
const maxAttempts = 5;

type WireClaim = V1PersistentVolumeClaim & ApiObject;
/** Where KubeSpawner says for whom it made a claim (`_build_common_annotations`). */
const kubeSpawnerUser = 'hub.jupyter.org/username';

type Owner = Pick<
  ServerIdentity,
  'serverId' | 'userName' | 'serverName' | 'accountName' | 'givenVolumes'
>;

/** Volumes that the hub claims for users and servers, and keeps between runs. */
export interface Claims {
  /** Makes those of a server that are missing. Throws when one is there that is not theirs. */
  ensure(owner: Owner, options: EnsureOptions): Promise<void>;
  /** Deletes those of a server for ever, with its user also those of the user. Idempotent. */
  remove(
    owner: Owner,
    options: { readonly withUser: boolean; readonly signal: AbortSignal },
  ): Promise<void>;
}

interface Meant {
  readonly claim: ClaimOptions;
  readonly owner: Owner;
  readonly path: string;
  readonly signal: AbortSignal;
}

interface EnsureOptions {
  readonly signal: AbortSignal;
  readonly onProgress: (event: SpawnProgress) => void;
}

/**
 * Name of a claim: that of the one that was given, or `{username}` and `{server}` become names that no other user or
 * server has, nor a later user of the same name, and that stay when the user is renamed.
 */
export function claimNameOf(
  { name }: Pick<ClaimOptions, 'name'>,
  owner: Omit<Owner, 'serverId'>,
): string {
  const given = givenTo(owner, name);
  if (given !== undefined) return given;
  const account = accountOf(owner);
  return name.replaceAll(/\{(username|server)\}/g, (_, word: string) =>
    objectName(account, word === 'username' ? '' : owner.serverName),
  );
}

/** The claim that an administrator has made a user's, in place of one of the configuration. */
function givenTo(
  { givenVolumes = [], serverName }: Omit<Owner, 'serverId'>,
  name: string,
): string | undefined {
  const of = isOfServer({ name }) ? serverName : '';
  const word = claimWordOf(name);
  return givenVolumes.find((given) => given.volume === word && given.serverName === of)?.source;
}

function accountOf({ accountName, userName }: Pick<Owner, 'accountName' | 'userName'>): string {
  return accountName ?? userName;
}

/** Whether it is of one server, not of all the servers of its user. */
function isOfServer({ name }: Pick<ClaimOptions, 'name'>): boolean {
  return name.includes('{server}');
}

export function createClaims(
  cluster: Cluster,
  options: Pick<KubernetesOptions, 'claims' | 'labels' | 'adopt_claims'>,
  deps: { readonly hubId: string; readonly namespace: () => Promise<string> },
): Claims {
  const { hubId } = deps;

  function customLabels(claim: ClaimOptions, owner: Owner): Record<string, string> {
    const userName = accountOf(owner);
    const { serverId } = owner;
    return isOfServer(claim)
      ? serverLabels(hubId, { serverId, userName })
      : userLabels(hubId, userName);
  }

  function isOwn({ metadata }: WireClaim, claim: ClaimOptions, owner: Owner): boolean {
    const own = Object.entries(customLabels(claim, owner));
    return own.every(([label, value]) => metadata.labels?.[label] === value);
  }

  async function find(path: string, signal: AbortSignal): Promise<WireClaim | undefined> {
    try {
      return await cluster.call<WireClaim>('GET', path, { signal });
    } catch (thrown) {
      if (isMissing(thrown)) return undefined;
      throw thrown;
    }
  }

  /** Whether it was given to the user, or KubeSpawner made it for them, and no hub has it. */
  function mayAdopt({ metadata }: WireClaim, claim: ClaimOptions, owner: Owner): boolean {
    const { name, labels, annotations } = metadata;
    return (
      options.adopt_claims &&
      labels?.[hubLabels.instance] === undefined &&
      (givenTo(owner, claim.name) === name || annotations?.[kubeSpawnerUser] === accountOf(owner))
    );
  }

  async function requireOwn(
    found: WireClaim,
    { claim, owner, path, signal }: Meant,
  ): Promise<void> {
    const { name, resourceVersion } = found.metadata;
    const isTheirs = isOwn(found, claim, owner);
    if (!isTheirs && !mayAdopt(found, claim, owner)) {
      throw new HubError(
        'conflict',
        text`The claim ${name} is there already, and is not this user's.`,
        {
          hint: text`The administrator must choose another name in KubernetesSpawner.claims, delete the claim, or let the hub take it over by KubernetesSpawner.adopt_claims.`,
        },
      );
    }
    if (found.status?.phase === 'Lost') {
      throw new HubError('upstream_failed', text`The volume of the claim ${name} is lost.`);
    }
    if (found.metadata.deletionTimestamp !== undefined) {
      throw new HubError('upstream_failed', text`The claim ${name} is being deleted.`, {
        hint: text`Start the server again in a moment.`,
      });
    }
    if (isTheirs) return;
    const { labels, annotations } = bodyOf(claim, owner, name).metadata ?? {};
    // Unless another hub has taken it meanwhile.
    const body = { metadata: { resourceVersion, labels, annotations } };
    await cluster.call('PATCH', path, { body, signal });
  }

  function bodyOf(claim: ClaimOptions, owner: Owner, name: string): V1PersistentVolumeClaim {
    return {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: {
        name,
        labels: { ...options.labels, ...customLabels(claim, owner) },
        annotations: identityAnnotations({
          userName: owner.userName,
          serverName: isOfServer(claim) ? owner.serverName : '',
        }),
      },
      spec: {
        accessModes: [...claim.access_modes],
        ...(claim.storage_class === undefined ? {} : { storageClassName: claim.storage_class }),
        resources: { requests: { storage: claim.size } },
      },
    };
  }

  return {
    async ensure(owner, { signal, onProgress }) {
      const words = new Set(options.claims.map((claim) => claimWordOf(claim.name)));
      const unknown = owner.givenVolumes?.find(({ volume }) => !words.has(volume));
      if (unknown !== undefined) throw noSuchVolume(unknown.volume);
      const collection = `/api/v1/namespaces/${await deps.namespace()}/persistentvolumeclaims`;
      for (const claim of options.claims) {
        const name = claimNameOf(claim, owner);
        const meant = { claim, owner, path: `${collection}/${name}`, signal };
        for (let attempt = 1; ; attempt += 1) {
          try {
            const found = await find(meant.path, signal);
            if (found !== undefined) {
              await requireOwn(found, meant);
              break;
            }
            if (givenTo(owner, claim.name) !== undefined) throw givenIsMissing(name);
            onProgress({ progress: 2, message: text`Claiming a volume of ${claim.size}.` });
            await cluster.call('POST', collection, { body: bodyOf(claim, owner, name), signal });
            break;
          } catch (thrown) {
            if (!(thrown instanceof ApiRefusal)) throw thrown;
            // Another server of the user made it at the same moment, or the cluster changed it, such as by binding it.
            const isRace = thrown.statusCode === 409 && attempt < maxAttempts;
            if (!isRace) throw explainRefusal(thrown, text`the claim ${name}`);
          }
        }
      }
    },

    async remove(owner, { withUser, signal }) {
      // The name of the user may be the account of another one, who was renamed.
      if (owner.accountName === undefined) return;
      const collection = `/api/v1/namespaces/${await deps.namespace()}/persistentvolumeclaims`;
      for (const claim of options.claims) {
        if (!isOfServer(claim) && !withUser) continue;
        const path = `${collection}/${claimNameOf(claim, owner)}`;
        const found = await find(path, signal);
        if (found === undefined || !isOwn(found, claim, owner)) continue;
        const body = { preconditions: { uid: found.metadata.uid } };
        try {
          await cluster.call('DELETE', path, { body, signal });
        } catch (thrown) {
          if (isMissing(thrown)) continue;
          throw thrown instanceof ApiRefusal
            ? explainRefusal(thrown, text`to delete the claim ${found.metadata.name}`)
            : thrown;
        }
      }
    },
  };
}

function givenIsMissing(name: string): HubError {
  return new HubError(
    'upstream_failed',
    text`There is no claim ${name}, which has the user's files.`,
    {
      hint: text`The administrator must bring it back, or choose another one: ${hubCommand('user volume')}`,
    },
  );
}

/** A start without it would show a user an empty folder. */
function noSuchVolume(volume: string): HubError {
  return new HubError(
    'bad_request',
    text`KubernetesSpawner.claims has no volume "${volume}", which the user has.`,
    {
      hint: text`The administrator must name it there, or choose another one: ${hubCommand('user volume')}`,
    },
  );
}
