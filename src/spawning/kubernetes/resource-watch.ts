import { TextError } from '../../platform/errors.ts';
import { text } from '../../platform/texts/text.ts';
import { systemClock } from '../processes/clock.ts';
import { ApiRefusal, type ApiStatus, isExpired } from './api-errors.ts';
import type { Cluster } from './cluster.ts';

/** What every object of Kubernetes has. */
export interface ApiObject {
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly uid: string;
    readonly resourceVersion: string;
  };
}

interface ApiList<Item> {
  readonly metadata: { readonly resourceVersion: string; readonly continue?: string };
  readonly items: readonly Item[] | null;
}

/** `reconnecting`: the API has ended the watch, as it does with each one after a while. */
export type WatchConnection = 'connected' | 'reconnecting' | Error;

export interface WatchHandlers<Item> {
  /** All there was at a version; what was known before and is not in it is gone. */
  readonly onList: (items: readonly Item[], version: string) => void;
  readonly onChange: (item: Item, isGone: boolean) => void;
  /** How the connection is; an error where the API does not answer or refuses. */
  readonly onConnection: (state: WatchConnection) => void;
}

const pageSize = 500;
const watchSeconds = 300;
/** The API sends a bookmark about each minute, so that a dead connection is noticed. */
const idleMs = 100_000;
const firstPauseMs = 200;
const maxPauseMs = 15_000;
/** A watch that ends sooner counts as failed, lest a broken API be asked in a loop. */
const shortestWatchMs = 1_000;
const maxLineLength = 16 * 1024 * 1024;

/**
 * Follows all objects of a path, over one connection (Kubernetes API concepts, Efficient detection of
 * changes): lists them, watches from there, lists again when the API has forgotten where that was
 * (410), and comes back when it was away. Ends when the signal aborts.
 */
export async function watchResource<Item extends ApiObject>(
  cluster: Cluster,
  source: { readonly path: string; readonly labelSelector?: string },
  options: { readonly handlers: WatchHandlers<Item>; readonly signal: AbortSignal },
): Promise<void> {
  const { path, labelSelector } = source;
  const { handlers, signal } = options;
  let version: string | undefined;
  let pauseMs = firstPauseMs;

  async function list(): Promise<string> {
    const items: Item[] = [];
    let next: string | undefined;
    for (;;) {
      const query = { labelSelector, limit: pageSize, continue: next };
      const page: ApiList<Item> = await cluster.call('GET', path, { query, signal });
      items.push(...(page.items ?? []));
      next = page.metadata.continue;
      if (next !== undefined && next !== '') continue;
      handlers.onList(items, page.metadata.resourceVersion);
      handlers.onConnection('connected');
      return page.metadata.resourceVersion;
    }
  }

  function take(line: string): void {
    const { type, object } = JSON.parse(line) as { type: string; object: Item & ApiStatus };
    if (type === 'ERROR') throw new ApiRefusal(object.code ?? 500, object);
    version = object.metadata.resourceVersion;
    if (type !== 'BOOKMARK') handlers.onChange(object, type === 'DELETED');
  }

  async function watchOnce(resourceVersion: string): Promise<void> {
    const query = {
      labelSelector,
      watch: true,
      allowWatchBookmarks: true,
      resourceVersion,
      timeoutSeconds: watchSeconds,
    };
    const stream = await cluster.stream(path, { query, signal, idleMs });
    handlers.onConnection('connected');
    for await (const line of linesOf(stream)) take(line);
    handlers.onConnection('reconnecting');
  }

  while (!signal.aborted) {
    const startedAtMs = systemClock.monotonicMs();
    try {
      version ??= await list();
      await watchOnce(version);
    } catch (thrown) {
      if (signal.aborted) return;
      if (isExpired(thrown)) {
        version = undefined;
        handlers.onConnection('reconnecting');
      } else {
        handlers.onConnection(thrown instanceof Error ? thrown : new Error(String(thrown)));
      }
    }
    if (systemClock.monotonicMs() - startedAtMs > shortestWatchMs) {
      pauseMs = firstPauseMs;
      continue;
    }
    // Of several hubs that lost the same API, not all come back at once.
    await systemClock.sleep(pauseMs * (0.5 + Math.random() / 2), signal);
    pauseMs = Math.min(pauseMs * 2, maxPauseMs);
  }
}

async function* linesOf(stream: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let pending = '';
  for await (const chunk of stream) {
    const parts = decoder.decode(chunk, { stream: true }).split('\n');
    parts[0] = pending + parts[0];
    pending = parts.pop() ?? '';
    if (pending.length > maxLineLength)
      throw new TextError(text`it sent an object that is too large`);
    for (const line of parts) if (line.trim() !== '') yield line;
  }
}
