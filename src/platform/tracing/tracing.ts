import { hash } from 'node:crypto';
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
  type RequestRecord,
  recordOf,
} from '../http/request-log.ts';
import { randomDigits } from './random-digits.ts';
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

  /** Notes the trace of a request; undefined where it is not recorded. */
  function recordedTraceOf(req: IncomingMessage): Trace | undefined {
    const parent = readTraceParent(req.headers);
    const record = recordOf(req);
    const traceId = parent?.traceId ?? traceIdOf(record);
    const isSampled =
      parent !== undefined && config.trust_parent ? parent.isSampled : isChosen(traceId);
    // Nobody looks for the probes and reports of every second.
    if (isSampled && parent === undefined && isRoutine.test(pathOf(req))) return undefined;
    const { method = '' } = req;
    const { startedAtMs } = record;
    const finish = exporter.add;
    const trace = new Trace({ traceId, isSampled, parent, method, startedAtMs, finish });
    noteTrace(req, trace);
    return isSampled ? trace : undefined;
  }

  return {
    request(req, res, serve) {
      const trace = recordedTraceOf(req);
      if (trace === undefined) return serve();
      res.once('close', () => trace.end(outcomeOf(req, res).status, attributesOf(req)));
      return currentTrace.run(trace, serve);
    },
    upgrade(req, socket, serve) {
      const trace = recordedTraceOf(req);
      if (trace === undefined) return serve();
      const attributes = attributesOf(req);
      socket.once('close', () =>
        trace.end(upgradeStatusOf(socket) ?? clientLeftStatus, attributes),
      );
      return currentTrace.run(trace, serve);
    },
    droppedSpans: () => exporter.dropped,
    [Symbol.asyncDispose]: () => exporter[Symbol.asyncDispose](),
  };
}

/** Paths without their queries, where secrets are. */
function attributesOf(req: IncomingMessage) {
  return { 'url.path': loggedTarget(pathOf(req)), 'hub.request_id': recordOf(req).id };
}

function pathOf({ url = '' }: IncomingMessage): string {
  const [path = ''] = url.split('?');
  return path;
}

/** A UUID of the client is an id of a trace, its hyphens aside; of its other ids none can be made. */
function traceIdOf({ id, hasClientId }: RequestRecord): string {
  const digits = hasClientId ? id.replaceAll('-', '') : '';
  return /^(?!.{16}0{16})[0-9a-f]{32}$/.test(digits) ? digits : randomDigits(32);
}
