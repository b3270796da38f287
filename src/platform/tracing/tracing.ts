import { hash, randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Logger } from 'pino';
import type { TracingConfig } from '../config/config.ts';
import type { Secret } from '../config/secret.ts';
import { upgradeStatusOf } from '../http/answer.ts';
import {
  clientLeftStatus,
  isRoutine,
  loggedTarget,
  noteTrace,
  outcomeOf,
  recordOf,
} from '../http/request-log.ts';
import { createSpanExporter } from './span-exporter.ts';
import { currentTrace, Trace } from './trace.ts';
import { readTraceParent } from './trace-context.ts';

/** Puts requests into traces, and exports those that are recorded. */
export interface Tracing extends AsyncDisposable {
  /** Serves a request within its trace. */
  request(req: IncomingMessage, res: ServerResponse, serve: () => void): void;
  /** Serves a request to upgrade within its trace, which ends with the connection. */
  upgrade(req: IncomingMessage, socket: Socket, serve: () => void): void;
  /** Spans that no collector got. */
  droppedSpans(): number;
}

export function createTracing(options: {
  readonly config: TracingConfig;
  /** Secrets of all processes of a hub: all of them choose the same traces. */
  readonly secrets: readonly Secret[];
  /** Which process this is among those of the hub. */
  readonly instanceName: string;
  readonly version: string;
  readonly log: Logger;
}): Tracing {
  const { config, version, log } = options;
  const exporter = createSpanExporter({
    config,
    version,
    resource: {
      'service.name': config.service_name,
      'service.version': version,
      'service.instance.id': options.instanceName,
    },
    log,
  });
  const key = Number.parseInt(hash('sha256', options.secrets[0]?.reveal() ?? '').slice(0, 8), 16);

  /**
   * By its id, so that every process decides the same; by the secret, so that no visitor does without having seen one
   * that is recorded. To multiply (Fibonacci hashing) costs a tenth of what a hash for more than that does.
   */
  function isChosen(traceId: string): boolean {
    const spread = Math.imul(Number.parseInt(traceId.slice(24), 16) ^ key, 0x9e3779b1) >>> 0;
    return spread < config.sample_ratio * 2 ** 32;
  }

  function within(req: IncomingMessage, follow: (trace: Trace) => void, serve: () => void): void {
    const parent = readTraceParent(req.headers);
    const [path = ''] = (req.url ?? '').split('?');
    // Nobody looks for the probes and reports of every second.
    if (parent === undefined && isRoutine.test(path)) {
      serve();
      return;
    }
    const { id, startedAtMs } = recordOf(req);
    const traceId = parent?.traceId ?? traceIdOf(id);
    const isSampled =
      parent !== undefined && config.trust_parent ? parent.isSampled : isChosen(traceId);
    const { method = '' } = req;
    const finish = exporter.add;
    const trace = new Trace({ traceId, isSampled, parent, method, startedAtMs, finish });
    noteTrace(req, trace);
    if (!isSampled) {
      serve();
      return;
    }
    follow(trace);
    currentTrace.run(trace, serve);
  }

  return {
    request(req, res, serve) {
      const follow = (trace: Trace) =>
        res.once('close', () => trace.end(outcomeOf(req, res).status, attributesOf(req)));
      within(req, follow, serve);
    },
    upgrade(req, socket, serve) {
      const attributes = attributesOf(req);
      const follow = (trace: Trace) =>
        socket.once('close', () =>
          trace.end(upgradeStatusOf(socket) ?? clientLeftStatus, attributes),
        );
      within(req, follow, serve);
    },
    droppedSpans: () => exporter.dropped,
    [Symbol.asyncDispose]: () => exporter[Symbol.asyncDispose](),
  };
}

/** Paths without their queries, where secrets are. */
function attributesOf(req: IncomingMessage) {
  const [path = ''] = loggedTarget(req.url ?? '').split('?');
  return { 'url.path': path, 'hub.request_id': recordOf(req).id };
}

/** A UUID is an id of a trace, its hyphens aside; of other ids of requests none can be made. */
function traceIdOf(requestId: string): string {
  const digits = requestId.replaceAll('-', '');
  return /^(?!.{16}0{16})[0-9a-f]{32}$/.test(digits) ? digits : randomUUID().replaceAll('-', '');
}
