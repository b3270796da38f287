import type { Logger } from 'pino';
import type { HubDatabase } from '../../platform/store/database.ts';
import type { RuntimeService } from './runtime-service.ts';
import type { RuntimeServiceStore } from './runtime-service-store.ts';

const retryMs = 2_000;

/** Keeps what runs in step with the services in the database, whichever hub changes them. */
export interface RuntimeServicesFollower extends Disposable {
  /** Resolves when everything that was committed before the call is in force here. */
  refresh(): Promise<void>;
}

export function followRuntimeServices(deps: {
  readonly store: Pick<RuntimeServiceStore, 'list'>;
  readonly database: Pick<HubDatabase, 'onChange'>;
  /** What is in force. */
  readonly services: readonly RuntimeService[];
  readonly apply: (services: readonly RuntimeService[]) => Promise<unknown>;
  readonly log: Logger;
}): RuntimeServicesFollower {
  let current = JSON.stringify(deps.services);
  let isDue = false;
  let running: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;

  async function run(): Promise<void> {
    try {
      while (isDue) {
        isDue = false;
        const services = await deps.store.list();
        const next = JSON.stringify(services);
        if (next === current) continue;
        await deps.apply(services);
        current = next;
      }
    } finally {
      running = undefined;
    }
  }

  function refresh(): Promise<void> {
    isDue = true;
    running ??= run();
    return running;
  }

  function follow(): void {
    clearTimeout(timer);
    refresh().catch((error: unknown) => {
      deps.log.warn({ err: error }, 'could not read the services that were added at run time');
      timer = setTimeout(follow, retryMs).unref();
    });
  }

  const stopListening = deps.database.onChange(follow, ['runtime_services_changed', 'all']);
  return {
    refresh,
    [Symbol.dispose]() {
      stopListening();
      clearTimeout(timer);
    },
  };
}
