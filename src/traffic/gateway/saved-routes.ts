import type { Logger } from 'pino';
import { z } from 'zod';
import type { SettingStore } from '../../platform/store/setting-store.ts';
import type { SavedRoute } from './proxy-api.ts';

const savedRoutes = z.array(z.tuple([z.string(), z.looseObject({ target: z.string() })]));

/** What the proxy API was given, kept over restarts. Disposing of it writes what waits. */
export interface SavedRoutes extends AsyncDisposable {
  load(): Promise<readonly SavedRoute[]>;
  /** Writes them in a moment, with the changes that come meanwhile. */
  saveSoon(routes: () => readonly SavedRoute[]): void;
}

const delayMs = 200;

export function createSavedRoutes({
  settings,
  instanceName,
  log,
}: {
  readonly settings: Pick<SettingStore, 'find' | 'set'>;
  /** Each instance is told its own. */
  readonly instanceName: string;
  readonly log: Logger;
}): SavedRoutes {
  const key = `proxy_api_routes:${instanceName}`;
  let waiting: (() => readonly SavedRoute[]) | undefined;
  let timer: NodeJS.Timeout | undefined;
  let writing = Promise.resolve();

  function write(): void {
    clearTimeout(timer);
    timer = undefined;
    const routes = waiting;
    if (routes === undefined) return;
    waiting = undefined;
    writing = writing
      .then(() => settings.set(key, JSON.stringify(routes())))
      .catch((error: unknown) => log.warn({ err: error }, 'routes could not be saved'));
  }

  return {
    async load() {
      const text = await settings.find(key);
      return text === undefined ? [] : savedRoutes.parse(JSON.parse(text));
    },
    saveSoon(routes) {
      waiting = routes;
      timer ??= setTimeout(write, delayMs).unref();
    },
    async [Symbol.asyncDispose]() {
      write();
      await writing;
    },
  };
}
