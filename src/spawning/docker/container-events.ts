import { systemClock } from '../processes/clock.ts';
import { createLineSplitter } from '../processes/output-lines.ts';
import { hubLabels } from './create-request.ts';
import type { Engine } from './engine.ts';

/** What happens to all the containers of a hub, over one connection. */
export interface ContainerEvents extends Disposable {
  /**
   * Resolves when something may have happened to a container: it did, or the connection was away meanwhile.
   * Never rejects; to be called before the container is asked for, so that nothing is missed in between.
   */
  next(container: string, signal: AbortSignal): Promise<void>;
}

const firstPauseMs = 250;
const maxPauseMs = 15_000;

/** Creates the watch; it connects when the first container is watched. */
export function createContainerEvents(engine: Engine, hubId: string): ContainerEvents {
  const waiting = new Map<string, Set<() => void>>();
  const closing = new AbortController();
  const { signal } = closing;
  let isFollowing = false;

  function wake(container: string): void {
    const resolvers = waiting.get(container) ?? [];
    waiting.delete(container);
    for (const resolve of resolvers) resolve();
  }

  function wakeAll(): void {
    for (const container of [...waiting.keys()]) wake(container);
  }

  function take(line: string): void {
    try {
      const event = JSON.parse(line) as { id?: string; Action?: string; Actor?: { ID?: string } };
      // Health checks and the like run within a container and leave it as it is.
      if (event.Action?.startsWith('exec') === true) return;
      wake(event.Actor?.ID ?? event.id ?? '');
    } catch {
      // Half a line, as a connection that breaks off leaves it, or one too long to be kept.
      wakeAll();
    }
  }

  async function followOnce(): Promise<void> {
    const filters = { type: ['container' as const], label: [`${hubLabels.hub}=${hubId}`] };
    const stream = await engine.call(
      (docker) => docker.getEvents({ filters, abortSignal: signal }),
      {
        signal,
        isStream: true,
      },
    );
    // What happened before the engine listened to the question is not told.
    wakeAll();
    const splitter = createLineSplitter();
    await new Promise<void>((resolve) => {
      stream.on('data', (chunk: Buffer) => {
        for (const line of splitter.push(chunk)) take(line);
      });
      stream.on('error', () => resolve());
      stream.on('close', () => resolve());
      stream.on('end', () => resolve());
    });
  }

  async function follow(): Promise<void> {
    let pauseMs = firstPauseMs;
    while (!signal.aborted) {
      const startedAtMs = systemClock.monotonicMs();
      // That the engine is away is told by those that ask it for something.
      await followOnce().catch(() => undefined);
      if (systemClock.monotonicMs() - startedAtMs > maxPauseMs) pauseMs = firstPauseMs;
      await systemClock.sleep(pauseMs, signal);
      pauseMs = Math.min(pauseMs * 2, maxPauseMs);
    }
  }

  return {
    next(container, left) {
      if (!isFollowing) {
        isFollowing = true;
        void follow();
      }
      return new Promise((resolve) => {
        const resolvers = waiting.get(container) ?? new Set();
        const onAbort = () => wake(container);
        const resolveOnce = () => {
          left.removeEventListener('abort', onAbort);
          resolve();
        };
        waiting.set(container, resolvers.add(resolveOnce));
        left.addEventListener('abort', onAbort, { once: true });
      });
    },

    [Symbol.dispose]() {
      closing.abort();
      wakeAll();
    },
  };
}
