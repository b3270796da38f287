import type Docker from 'dockerode';
import { HubError, TextError } from '../../platform/errors.ts';
import { isSamePhrase, type Phrase, text } from '../../platform/texts/text.ts';
import type { SpawnProgress } from '../../plugin/host/spawn-request.ts';
import { pulling } from '../spawner-texts.ts';
import type { DockerOptions } from './docker-options.ts';
import type { Engine } from './engine.ts';
import { engineMessage, explainPull, isEngineAnswer, isMissing } from './engine-errors.ts';
import { createPullProgress, type PullEvent } from './pull-progress.ts';

/** What matters of an image that the engine has. */
export interface EngineImage {
  /** User of its programs as `USER` in its Dockerfile says, empty for root. */
  readonly user: string;
  /** As Docker has it, such as `amd64`. */
  readonly architecture: string;
}

export interface ImageRequest {
  readonly image: string;
  readonly policy: DockerOptions['pull_policy'];
  readonly signal: AbortSignal;
  readonly onProgress: (event: SpawnProgress) => void;
}

/** Images on the engine. Starts that need one image at the same time share one pull. */
export interface Images {
  /** Sees to it that the engine has an image. Throws with a sentence for the user when it cannot. */
  ensure(request: ImageRequest): Promise<EngineImage>;
  /** The image, if the engine has it. */
  find(image: string, signal: AbortSignal): Promise<EngineImage | undefined>;
  /**
   * Has the engine ask the registry of an image for it, pulling nothing: resolves to the reason for the user why it
   * could not be pulled, undefined where it could, and `unasked` where the engine cannot ask.
   */
  askRegistry(image: string, signal: AbortSignal): Promise<string | 'unasked' | undefined>;
}

interface Pull {
  readonly done: Promise<void>;
  readonly cancel: AbortController;
  readonly listeners: Set<ImageRequest['onProgress']>;
}

const maxPauseMs = 1_000;

export function createImages(
  engine: Engine,
  options: Pick<DockerOptions, 'registry' | 'registry_username' | 'registry_password'>,
): Images {
  const pulls = new Map<string, Pull>();

  async function find(image: string, signal: AbortSignal): Promise<EngineImage | undefined> {
    try {
      const found = await engine.call((docker) => docker.getImage(image).inspect(), { signal });
      return { user: found.Config?.User ?? '', architecture: found.Architecture };
    } catch (thrown) {
      if (isMissing(thrown)) return undefined;
      throw isEngineAnswer(thrown)
        ? new HubError(
            'upstream_failed',
            text`The image ${image} cannot be used: ${engineMessage(thrown)}.`,
          )
        : thrown;
    }
  }

  function credentialsFor(image: string) {
    const { registry, registry_username: username, registry_password: password } = options;
    if (registry === undefined || username === undefined || password === undefined) return {};
    if (!image.startsWith(`${registry}/`)) return {};
    return { authconfig: { username, password, serveraddress: registry } };
  }

  async function pull(image: string, { cancel, listeners }: Omit<Pull, 'done'>): Promise<void> {
    const progress = createPullProgress(image);
    let reportedAtMs = Number.NEGATIVE_INFINITY;
    let last: Phrase | undefined;
    let failure: string | undefined;
    const tell = (event: PullEvent): void => {
      progress.add(event);
      if (performance.now() - reportedAtMs >= maxPauseMs) tellAll();
    };
    const tellAll = (): void => {
      const next = progress.summary();
      if (isSamePhrase(next.message, last)) return;
      reportedAtMs = performance.now();
      last = next.message;
      for (const listener of listeners) listener(next);
    };
    await engine.call(
      async (docker) => {
        const settings = { ...credentialsFor(image), abortSignal: cancel.signal };
        const stream = await docker.pull(image, settings);
        await new Promise<void>((resolve, reject) => {
          docker.modem.followProgress(
            stream,
            (error) => (error ? reject(error) : resolve()),
            (event: PullEvent) => {
              // Once the engine has begun to answer, it can only tell of a failure in the answer.
              failure ??= event.error;
              tell(event);
            },
          );
          stream.once('close', () => reject(new TextError(text`the engine broke off`)));
        });
      },
      { isStream: true, signal: cancel.signal },
    );
    if (failure !== undefined) throw new Error(failure);
    tellAll();
  }

  function forget(image: string, pull: Pull): void {
    if (pulls.get(image) === pull) pulls.delete(image);
  }

  function joinPull({ image, signal, onProgress }: ImageRequest): Promise<void> {
    let current = pulls.get(image);
    if (current === undefined) {
      const parts = {
        cancel: new AbortController(),
        listeners: new Set<ImageRequest['onProgress']>(),
      };
      const begun: Pull = {
        ...parts,
        done: pull(image, parts).finally(() => forget(image, begun)),
      };
      begun.done.catch(() => undefined);
      current = begun;
      pulls.set(image, begun);
    }
    const shared = current;
    const { done, cancel, listeners } = shared;
    listeners.add(onProgress);
    const aborted = Promise.withResolvers<never>();
    const leave = () => {
      listeners.delete(onProgress);
      // The last one that waited is gone: so is the reason to go on.
      if (listeners.size === 0) {
        forget(image, shared);
        cancel.abort();
      }
      aborted.reject(signal.reason);
    };
    signal.addEventListener('abort', leave, { once: true });
    return Promise.race([done, aborted.promise]).finally(() => {
      signal.removeEventListener('abort', leave);
      listeners.delete(onProgress);
    });
  }

  return {
    find,

    async askRegistry(image, signal) {
      try {
        const distribution = (docker: Docker) =>
          docker.getImage(image).distribution(credentialsFor(image));
        await engine.call(distribution, { signal });
        return undefined;
      } catch (thrown) {
        if (!isEngineAnswer(thrown)) throw thrown;
        // Podman has no such question (Docker Engine API, DistributionInspect).
        const cannotAsk = thrown.statusCode === 404 || thrown.statusCode === 405;
        if (cannotAsk && !/manifest|repository/i.test(engineMessage(thrown))) return 'unasked';
        return explainPull(engineMessage(thrown), image).message;
      }
    },

    async ensure(request) {
      const { policy, signal, onProgress } = request;
      const image = withTag(request.image);
      const present = await find(image, signal);
      if (present !== undefined && policy !== 'always') return present;
      if (policy === 'never') {
        throw new HubError(
          'upstream_failed',
          text`The image ${image} is not on the container engine, and none is pulled (pull_policy).`,
        );
      }
      onProgress({ progress: 5, phase: 'pulling', message: pulling(image) });
      try {
        await joinPull({ ...request, image });
      } catch (thrown) {
        signal.throwIfAborted();
        if (thrown instanceof HubError) throw thrown;
        throw explainPull(engineMessage(thrown), image);
      }
      const pulled = await find(image, signal);
      if (pulled !== undefined) return pulled;
      throw new HubError(
        'upstream_failed',
        text`The image ${image} is gone right after it was pulled.`,
      );
    },
  };
}

/** The engine takes a name without a tag for all tags there are. */
export function withTag(image: string): string {
  const name = image.slice(image.lastIndexOf('/') + 1);
  return name.includes(':') || name.includes('@') ? image : `${image}:latest`;
}
