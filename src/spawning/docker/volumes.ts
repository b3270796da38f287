import { HubError } from '../../platform/errors.ts';
import { text } from '../../platform/texts/text.ts';
import type { ServerIdentity, SpawnRequest } from '../../plugin/host/spawn-request.ts';
import { hubLabels } from './create-request.ts';
import type { Engine } from './engine.ts';
import { engineMessage, isEngineAnswer, isMissing } from './engine-errors.ts';

/** The named volumes of one hub on an engine. */
export interface Volumes {
  /**
   * Makes those of a server that are missing, with labels that say whose they are. One that is there stays as it is.
   * Rejects with the library's error when the engine refuses.
   */
  ensure(request: SpawnRequest): Promise<void>;
  /**
   * Removes those of a server, or all of its user, that this hub made; others have no label of it. Rejects when
   * one cannot be removed. Idempotent.
   */
  remove(server: ServerIdentity, options: RemoveOptions): Promise<void>;
}

interface RemoveOptions {
  readonly withUser: boolean;
  readonly signal: AbortSignal;
}

export function createVolumes(engine: Engine, hubId: string): Volumes {
  async function namesWith(label: string, value: string, signal: AbortSignal) {
    const wanted = { [hubLabels.hub]: hubId, [label]: value };
    const filters = { label: Object.entries(wanted).map(([name, text]) => `${name}=${text}`) };
    const { Volumes: found } = await engine.call(
      (docker, abortSignal) => docker.listVolumes({ filters, abortSignal }),
      { signal },
    );
    // Podman lists those with any of the labels.
    const own = (found ?? []).filter(({ Labels }) =>
      Object.entries(wanted).every(([name, text]) => Labels?.[name] === text),
    );
    return own.map(({ Name }) => Name);
  }

  async function removeOne(name: string, signal: AbortSignal): Promise<void> {
    try {
      await engine.call((docker, abortSignal) => docker.getVolume(name).remove({ abortSignal }), {
        signal,
      });
    } catch (thrown) {
      if (isMissing(thrown)) return;
      if (!isEngineAnswer(thrown)) throw thrown;
      const message = text`The volume ${name} could not be removed: ${engineMessage(thrown)}.`;
      throw new HubError('upstream_failed', message, { cause: thrown });
    }
  }

  return {
    async ensure({ volumes, serverId, accountName, signal }) {
      for (const { source, owner } of volumes) {
        if (source.startsWith('/')) continue;
        const Labels = {
          [hubLabels.hub]: hubId,
          ...(owner === undefined || accountName === undefined
            ? {}
            : { [hubLabels.account]: accountName }),
          ...(owner === 'server' ? { [hubLabels.serverId]: serverId } : {}),
        };
        // Podman takes no labels with the request for the container. One that is there is answered with as it is.
        await engine.call(
          (docker, abortSignal) => docker.createVolume({ Name: source, Labels, abortSignal }),
          { signal },
        );
      }
    },

    async remove({ serverId, accountName }, { withUser, signal }) {
      const names = await (withUser && accountName !== undefined
        ? namesWith(hubLabels.account, accountName, signal)
        : namesWith(hubLabels.serverId, serverId, signal));
      for (const name of names) await removeOne(name, signal);
    },
  };
}
