import { hostname } from 'node:os';
import { pid } from 'node:process';
import type { Logger } from 'pino';
import type { ReportedGateway } from '../../cluster/instances/instance-figures.ts';
import { dateOf } from '../../platform/concurrency/monotonic-clock.ts';
import { createPeriodic, type Periodic } from '../../platform/concurrency/periodic.ts';
import type { ForwardedFigures } from '../../platform/metrics/forwarded-figures.ts';
import { addLoad, type RouteLoad, takeLoad } from '../proxy/route-load.ts';
import type { RouteTable } from '../proxy/route-table.ts';
import type { WebSocketForwarder } from '../proxy/websocket-forwarder.ts';
import type { GatewayReport } from './gateway-questions.ts';
import type { HubLink } from './hub-link.ts';

const reportMs = 2_000;
/** A body of the API holds some more. Of what is left the next report tells. */
const maxLoads = 5_000;

/** Reports to the hub while it is there; what it did not take is told again. */
export function createGatewayReporter(deps: {
  readonly name: string;
  readonly link: Pick<HubLink, 'ask' | 'isConnected' | 'lastEventAtMs'>;
  readonly routes: Pick<RouteTable, 'list'>;
  readonly webSockets: Pick<WebSocketForwarder, 'openWebSockets' | 'recordTraffic'>;
  readonly figures: ForwardedFigures;
  /** Spans that no collector got. */
  readonly droppedSpans: () => number;
  /** Connections of clients that are open now. */
  readonly connections: () => number;
  readonly log: Logger;
}): Periodic {
  const { name, link, routes, webSockets, figures } = deps;
  const startedAtMs = performance.now();
  let number = 0;
  let requests = 0;
  let reportedUntilMs = performance.now();
  /** Sent, and perhaps not taken. */
  let pending: GatewayReport | undefined;

  function takeLoads(elapsedMs: number): GatewayReport['loads'] {
    const loads: GatewayReport['loads'] = [];
    for (const { key, load } of routes.list()) {
      if (!isLoaded(load)) continue;
      if (loads.length === maxLoads) {
        load.webSocketMs += load.openWebSockets * elapsedMs;
        continue;
      }
      const taken = takeLoad(load, elapsedMs);
      const { requests: asked, answers, answerMs, webSocketMs } = taken;
      loads.push([key, asked, answers, Math.round(answerMs), Math.round(webSocketMs)]);
    }
    return loads;
  }

  function takeReport(): GatewayReport {
    webSockets.recordTraffic();
    const sinceMs = reportedUntilMs;
    reportedUntilMs = performance.now();
    number += 1;
    const forwarded = figures.take();
    for (const { totals } of forwarded) {
      for (const total of Object.values(totals)) requests += total;
    }
    return {
      name,
      number,
      web_sockets: webSockets.openWebSockets,
      host: hostname(),
      pid,
      up_ms: performance.now() - startedAtMs,
      connections: deps.connections(),
      requests,
      heard_at_ms: link.lastEventAtMs(),
      used_routes: routes
        .list()
        .filter(({ lastActivityMs }) => lastActivityMs >= sinceMs)
        .map(({ key }) => key),
      sent_routes: routes
        .list()
        .filter(({ lastUseMs }) => lastUseMs >= sinceMs)
        .map(({ key }) => key),
      loads: takeLoads(reportedUntilMs - sinceMs),
      forwarded,
      dropped_spans: deps.droppedSpans(),
    };
  }

  return createPeriodic({
    intervalMs: reportMs,
    async work() {
      if (!link.isConnected()) return;
      pending ??= takeReport();
      await link.ask('report', pending);
      pending = undefined;
    },
    onError: (error) => deps.log.debug({ err: error }, 'report rejected by hub'),
  });
}

function isLoaded({ requests, answers, openWebSockets, webSocketMs }: RouteLoad): boolean {
  return requests > 0 || answers > 0 || openWebSockets > 0 || webSocketMs > 0;
}

/** What gateways report, at the hub. */
export interface GatewayReports {
  take(report: GatewayReport): void;
  /** Of all gateways that reported lately. */
  openWebSockets(): number;
  /** Of traces, that no collector got. */
  droppedSpans(): number;
  list(): readonly ReportedGateway[];
}

/** A gateway that is silent for so long is gone, and its WebSockets with it. */
const goneMs = 15_000;

export function createGatewayReports(deps: {
  readonly routes: Pick<RouteTable, 'find'>;
  readonly countAll: (forwarded: GatewayReport['forwarded']) => void;
  /** Time of day by the clock of the feed. */
  readonly now: () => number;
}): GatewayReports {
  const latest = new Map<string, { report: GatewayReport; lagMs: number; atMs: number }>();

  function present(): { report: GatewayReport; lagMs: number; atMs: number }[] {
    const nowMs = performance.now();
    return [...latest.values()].filter(({ atMs }) => nowMs - atMs <= goneMs);
  }

  return {
    take(report) {
      const { name, number, used_routes, sent_routes = used_routes, loads, forwarded } = report;
      const nowMs = performance.now();
      for (const [known, { atMs }] of latest) if (nowMs - atMs > goneMs) latest.delete(known);
      const isRepeated = latest.get(name)?.report.number === number;
      const lagMs = Math.max(0, deps.now() - report.heard_at_ms);
      latest.set(name, {
        report: { ...report, used_routes: [], sent_routes: [], loads: [], forwarded: [] },
        lagMs,
        atMs: nowMs,
      });
      for (const key of used_routes) {
        const route = find(key);
        // Now, since activity from before the last look at the routes would not be seen.
        if (route !== undefined) route.lastActivityMs = nowMs;
      }
      for (const key of sent_routes) {
        const route = find(key);
        if (route !== undefined) route.lastUseMs = nowMs;
      }
      if (isRepeated) return;
      for (const [key, requests, answers, answerMs, webSocketMs] of loads) {
        const route = find(key);
        if (route !== undefined) addLoad(route.load, { requests, answers, answerMs, webSocketMs });
      }
      deps.countAll(forwarded);
    },
    openWebSockets() {
      return present().reduce((open, { report }) => open + report.web_sockets, 0);
    },
    droppedSpans: () => present().reduce((sum, { report }) => sum + report.dropped_spans, 0),
    list: () =>
      present()
        // One of a former version tells nothing of itself.
        .filter(({ report }) => report.pid > 0)
        .map(({ report, lagMs, atMs }) => ({
          name: report.name,
          host: report.host,
          pid: report.pid,
          startedAtMs: dateOf(atMs - report.up_ms).getTime(),
          reportedAtMs: dateOf(atMs).getTime(),
          connections: report.connections,
          webSockets: report.web_sockets,
          requests: report.requests,
          feedLagMs: lagMs,
        })),
  };

  function find(key: string) {
    try {
      return deps.routes.find(key);
    } catch {
      // No key of a route.
      return undefined;
    }
  }
}
