import type { Logger } from 'pino';
import { isSamePhrase, type Phrase } from '../../platform/texts/text.ts';
import { type Clock, systemClock } from '../../spawning/processes/clock.ts';
import type { probeReadiness } from '../../spawning/processes/readiness-probe.ts';
import { watchHealth } from './health-watch.ts';
import type { Service } from './service.ts';
import type { ServiceRoutes } from './service-routes.ts';
import type { ServiceState, SupervisedService } from './service-status.ts';

export function createExternalService(options: {
  readonly service: Service;
  readonly routes: ServiceRoutes;
  readonly probe: typeof probeReadiness;
  readonly log: Logger;
  readonly clock?: Clock;
  /** Whether the route of a former service of this name stays open until this one is ready. */
  readonly takesOver?: boolean;
  /** Called when it is known for the first time how it is. */
  readonly onFirstAnswer?: () => void;
}): SupervisedService {
  const { routes, probe, log, clock = systemClock, takesOver = false } = options;
  let { service } = options;
  let state: ServiceState = 'stopped';
  let since = new Date(clock.now());
  let lastError: Phrase | undefined;
  let answeredInMs: number | undefined;
  let watch = new AbortController();

  function enter(next: ServiceState): void {
    if (state === next) return;
    state = next;
    since = new Date(clock.now());
  }

  function onReady(): void {
    log.info({ service: service.name }, 'service is ready');
    enter('ready');
    lastError = undefined;
    routes.open(service);
    options.onFirstAnswer?.();
  }

  function onAnswer(tookMs: number): void {
    answeredInMs = tookMs;
  }

  function onUnhealthy(reason: Phrase): void {
    if (!isSamePhrase(reason, lastError))
      log.warn({ service: service.name, reason }, 'service is not ready');
    lastError = reason;
    answeredInMs = undefined;
    options.onFirstAnswer?.();
    if (state === 'unhealthy') return;
    enter('unhealthy');
    routes.close(service);
  }

  function start(): void {
    const { url } = service;
    // Without a web server there is nothing to ask: it only holds a token.
    enter(url === undefined ? 'ready' : 'starting');
    if (url === undefined) {
      if (service.isBehindProxy) routes.open(service);
      options.onFirstAnswer?.();
      return;
    }
    if (!takesOver || lastError !== undefined) routes.close(service);
    watch = new AbortController();
    const { signal } = watch;
    const watched = { ...service, url };
    watchHealth({ service: watched, signal, probe, clock, onReady, onAnswer, onUnhealthy }).catch(
      (thrown: unknown) =>
        log.error({ service: service.name, err: thrown }, 'service watch failed'),
    );
  }

  return {
    get service() {
      return service;
    },
    start,
    async stop() {
      watch.abort();
      enter('stopped');
    },
    restart() {
      watch.abort();
      // So that it shows when the state afterwards is the same.
      enter('stopped');
      start();
    },
    update(changed) {
      service = changed;
      if (state === 'ready' && (service.url !== undefined || service.isBehindProxy))
        routes.open(service);
    },
    status: () => ({
      name: service.name,
      kind: 'external',
      state,
      isReady: state === 'ready',
      since,
      pid: undefined,
      startedAt: undefined,
      uptimeMs: undefined,
      nextStartAt: undefined,
      restarts: 0,
      lastExit: undefined,
      lastError,
      usage: undefined,
      answeredInMs,
    }),
  };
}
