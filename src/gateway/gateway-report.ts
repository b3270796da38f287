import type { Logger } from 'pino';
import { z } from 'zod';
import { monotonicMs } from '../concurrency/monotonic-clock.ts';
import { createPeriodic, type Periodic } from '../concurrency/periodic.ts';
import type { ForwardedFigures } from '../metrics/forwarded-figures.ts';
import type { RouteTable } from '../proxy/route-table.ts';
import type { WebSocketForwarder } from '../proxy/websocket-forwarder.ts';
import type { HubLink } from './hub-link.ts';

const count = z.number().nonnegative();

/** What a gateway process tells its hub now and then. */
export const gatewayReport = z.object({
  name: z.string().min(1).max(200).describe('Of the gateway.'),
  number: z.int().positive().describe('Grows with each report; a repeated one counts once.'),
  web_sockets: z.int().nonnegative().describe('Open now.'),
  used_routes: z.array(z.string()).max(100_000).describe('Prefixes, since the report before.'),
  forwarded: z
    .array(
      z.object({
        route_kind: z.string().max(20),
        service: z.string().max(300),
        totals: z.record(z.string().regex(/^\d{3}$/), z.int().nonnegative()),
        buckets: z.array(z.int().nonnegative()).max(100),
        sum: count,
      }),
    )
    .max(10_000)
    .describe('Requests since the report before.'),
});

export type GatewayReport = z.output<typeof gatewayReport>;

const reportMs = 2_000;

/** Reports to the hub while it is there; what it did not take is told again. */
export function createGatewayReporter(deps: {
  readonly name: string;
  readonly link: Pick<HubLink, 'ask' | 'isConnected'>;
  readonly routes: Pick<RouteTable, 'list'>;
  readonly webSockets: Pick<WebSocketForwarder, 'openWebSockets' | 'recordTraffic'>;
  readonly figures: ForwardedFigures;
  readonly log: Logger;
}): Periodic {
  const { name, link, routes, webSockets, figures } = deps;
  let number = 0;
  let toldUntilMs = monotonicMs();
  /** Sent, and perhaps not taken. */
  let pending: GatewayReport | undefined;

  function takeReport(): GatewayReport {
    webSockets.recordTraffic();
    const sinceMs = toldUntilMs;
    toldUntilMs = monotonicMs();
    number += 1;
    return {
      name,
      number,
      web_sockets: webSockets.openWebSockets,
      used_routes: routes
        .list()
        .filter(({ lastActivityMs }) => lastActivityMs >= sinceMs)
        .map(({ prefix }) => prefix),
      forwarded: figures.take(),
    };
  }

  return createPeriodic({
    intervalMs: reportMs,
    async work() {
      if (!link.isConnected()) return;
      pending ??= takeReport();
      await link.ask('reports', pending, z.object({}));
      pending = undefined;
    },
    onError: (error) => deps.log.debug({ err: error }, 'the hub did not take a report'),
  });
}

/** What gateways report, at the hub. */
export interface GatewayReports {
  take(report: GatewayReport): void;
  /** Of all gateways that reported lately. */
  openWebSockets(): number;
}

/** A gateway that is silent for so long is gone, and its WebSockets with it. */
const goneMs = 15_000;

export function createGatewayReports(deps: {
  readonly routes: Pick<RouteTable, 'find'>;
  readonly countAll: (forwarded: GatewayReport['forwarded']) => void;
}): GatewayReports {
  const latest = new Map<string, { number: number; webSockets: number; atMs: number }>();
  return {
    take({ name, number, web_sockets, used_routes, forwarded }) {
      const nowMs = monotonicMs();
      for (const [known, { atMs }] of latest) if (nowMs - atMs > goneMs) latest.delete(known);
      const isRepeated = latest.get(name)?.number === number;
      latest.set(name, { number, webSockets: web_sockets, atMs: nowMs });
      for (const prefix of used_routes) {
        const route = find(prefix);
        // Now, since activity from before the last look at the routes would not be seen.
        if (route !== undefined) route.lastActivityMs = nowMs;
      }
      if (!isRepeated) deps.countAll(forwarded);
    },
    openWebSockets() {
      let open = 0;
      const nowMs = monotonicMs();
      for (const { webSockets, atMs } of latest.values())
        if (nowMs - atMs <= goneMs) open += webSockets;
      return open;
    },
  };

  function find(prefix: string) {
    try {
      return deps.routes.find(prefix);
    } catch {
      // No prefix of a route.
      return undefined;
    }
  }
}
