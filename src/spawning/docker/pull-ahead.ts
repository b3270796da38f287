import { createPeriodic } from '../../platform/concurrency/periodic.ts';
import type { PluginLog } from '../../platform/logging/plugin-log.ts';
import { engineMessage } from './engine-errors.ts';
import type { UsedImage } from './examine-engine.ts';
import type { Images } from './images.ts';

const retryMs = 5 * 60_000;

/** Pulls images one after the other before anybody asks for them, in the background; tries those again that it cannot have. */
export function createPullAhead(
  wanted: ReadonlyMap<string, UsedImage>,
  { images, log }: { readonly images: Pick<Images, 'ensure'>; readonly log: PluginLog },
): AsyncDisposable {
  const left = new Map([...wanted].filter(([, { policy }]) => policy !== 'never'));
  const closing = new AbortController();
  const { signal } = closing;

  async function pull(image: string, { policy }: UsedImage): Promise<void> {
    let isPulled = false;
    const onProgress = ({ message }: { readonly message: unknown }) => {
      if (!isPulled) log.info({ image }, 'pulling image ahead');
      isPulled = true;
      log.debug({ image, progress: String(message) }, 'pulling image ahead');
    };
    try {
      await images.ensure({ image, policy, signal, onProgress });
      left.delete(image);
      if (isPulled) log.info({ image }, 'image pulled ahead');
    } catch (error) {
      if (signal.aborted) return;
      log.warn({ image, reason: engineMessage(error) }, 'image could not be pulled ahead');
    }
  }

  const periodic = createPeriodic({
    intervalMs: retryMs,
    async work() {
      for (const [image, used] of [...left]) await pull(image, used);
    },
    onError: (error) => log.warn({ reason: engineMessage(error) }, 'could not pull images ahead'),
  });
  void periodic.run();
  return {
    async [Symbol.asyncDispose]() {
      closing.abort();
      await periodic[Symbol.asyncDispose]();
    },
  };
}
