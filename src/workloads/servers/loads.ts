import type { Logger } from 'pino';
import type { ChannelReceiver } from '../../cluster/instances/channel-receiver.ts';
import { createFiguresReader } from '../../cluster/instances/instance-figures.ts';
import {
  answerLoads,
  createLoadReader,
  loadsOperation,
} from '../../cluster/instances/load-reader.ts';
import { createPeriodic } from '../../platform/concurrency/periodic.ts';
import {
  createLoadHistories,
  type LoadSample,
  loadKeys,
  loadSpans,
} from '../../platform/metrics/load-history.ts';
import type { Metrics } from '../../platform/metrics/metrics.ts';
import type { ResourceUsage } from '../../plugin/host/spawner.ts';
import { type RouteLoad, type TakenLoad, takeLoad } from '../../traffic/proxy/route-load.ts';
import type { RouteTable } from '../../traffic/proxy/route-table.ts';
import type { ServerRoutes } from './server-routes.ts';
import type { ServerUsage } from './server-usage.ts';

/** How busy everything is, and was: measures every ten seconds what this instance runs and forwards. */
export function openLoads(
  hub: Omit<Parameters<typeof createLoadReader>[0], 'histories'> & {
    readonly metrics: Pick<Metrics, 'answered'>;
    readonly log: Logger;
    readonly routes: Pick<RouteTable, 'list'>;
    readonly channel: Pick<ChannelReceiver, 'handle'>;
    readonly disposables: AsyncDisposableStack;
    readonly registry: {
      statuses(): readonly {
        readonly name: string;
        readonly isHere: boolean;
        readonly usage?: ResourceUsage | undefined;
      }[];
    };
    readonly serverRoutes: Pick<ServerRoutes, 'loads'>;
    readonly serverUsage: Pick<ServerUsage, 'measureAll' | 'of'>;
  },
) {
  const { metrics, log } = hub;
  const histories = createLoadHistories({ now: () => performance.now() });
  const readFigures = createFiguresReader();
  let takenAtMs = performance.now();
  let answeredBefore = metrics.answered();

  /** What the hub answered itself since this was called last. */
  function takeOwn(): TakenLoad {
    const before = answeredBefore;
    answeredBefore = metrics.answered();
    const requests = answeredBefore.requests - before.requests;
    const answerMs = (answeredBefore.seconds - before.seconds) * 1000;
    return { requests, answers: requests, answerMs, webSocketMs: 0 };
  }

  async function sample(): Promise<void> {
    await hub.serverUsage.measureAll();
    const elapsedMs = Math.max(1, performance.now() - takenAtMs);
    takenAtMs += elapsedMs;
    const record = (key: string, load: LoadSample) => histories.record(key, load, elapsedMs / 1000);

    const taken = new Map<RouteLoad, TakenLoad>();
    const byService = new Map<string, TakenLoad>();
    let total = takeOwn();
    for (const { load, owner } of hub.routes.list()) {
      const own = takeLoad(load, elapsedMs);
      taken.set(load, own);
      total = add(total, own);
      if (owner.kind !== 'service') continue;
      byService.set(owner.name, add(byService.get(owner.name) ?? none, own));
    }
    const isNews = (key: string, load: TakenLoad | undefined) =>
      (load?.requests ?? 0) > 0 ||
      (load?.webSocketMs ?? 0) > 0 ||
      histories.latest(key) !== undefined;

    for (const { serverId, isHere, load } of hub.serverRoutes.loads()) {
      const key = loadKeys.server(serverId);
      const own = taken.get(load);
      // The one that runs it measures it; the others only know what passes through them.
      if (!isHere && !isNews(key, own)) continue;
      const { cpuCores, memoryBytes } = hub.serverUsage.of(serverId) ?? {};
      record(key, { ...(isHere && { cpuCores, memoryBytes }), ...sampleOf(own, elapsedMs) });
    }
    for (const { name, isHere, usage } of hub.registry.statuses()) {
      const key = loadKeys.service(name);
      const own = byService.get(name);
      if (!isHere && !isNews(key, own)) continue;
      const { cpuCores, memoryBytes } = (isHere ? usage : undefined) ?? {};
      record(key, { cpuCores, memoryBytes, ...sampleOf(own, elapsedMs) });
    }
    const { cpuCores, memoryBytes } = readFigures();
    record(loadKeys.instance, { cpuCores, memoryBytes, ...sampleOf(total, elapsedMs) });
    histories.prune();
  }

  hub.channel.handle(loadsOperation, async (question) => answerLoads(histories, question));
  hub.disposables.use(
    createPeriodic({
      intervalMs: loadSpans.hour.stepSeconds * 1000,
      work: sample,
      onError: (error) => log.warn({ err: error }, 'could not measure how busy the hub is'),
    }),
  );
  return { loads: createLoadReader({ ...hub, histories }) };
}

const none: TakenLoad = { requests: 0, answers: 0, answerMs: 0, webSocketMs: 0 };

function add(left: TakenLoad, right: TakenLoad): TakenLoad {
  return {
    requests: left.requests + right.requests,
    answers: left.answers + right.answers,
    answerMs: left.answerMs + right.answerMs,
    webSocketMs: left.webSocketMs + right.webSocketMs,
  };
}

/** Nothing for what has no route. */
function sampleOf(load: TakenLoad | undefined, elapsedMs: number): LoadSample {
  if (load === undefined) return {};
  const { requests, answers, answerMs, webSocketMs } = load;
  return {
    requests,
    answers,
    answerSeconds: answerMs / 1000,
    webSockets: webSocketMs / elapsedMs,
  };
}
