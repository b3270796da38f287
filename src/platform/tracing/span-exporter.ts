import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { createPeriodic, type Periodic } from '../concurrency/periodic.ts';
import type { TracingConfig } from '../config/config.ts';
import { type Attributes, type FinishedSpan, toKeyValues } from './trace.ts';

/** Sends spans to a collector in the background. */
export interface SpanExporter extends Pick<Periodic, 'run'>, AsyncDisposable {
  /** Takes a span. Where too many wait, it is dropped. */
  add(span: FinishedSpan): void;
  /** Spans that no collector got. */
  readonly dropped: number;
}

const intervalMs = 1_000;
const maxWaiting = 8_192;
const maxBatch = 512;
const answerMs = 10_000;
/** What the last batches may take when the hub stops. */
const lastMs = 1_000;
const firstDelayMs = 1_000;
const maxDelayMs = 60_000;
/** The collector may take them later (OTLP 1.x, OTLP/HTTP Response, Retryable Response Codes). */
const retried = new Set([429, 502, 503, 504]);

/** A collector for which to wait. */
class TryLater extends Error {
  readonly afterMs: number | undefined;

  constructor(problem: string, afterMs?: number, cause?: unknown) {
    super(problem, { cause });
    this.afterMs = afterMs;
  }
}

/** Exports by OTLP/HTTP in JSON; where the collector is away, after growing delays. It never throws. */
export function createSpanExporter(options: {
  readonly config: Pick<TracingConfig, 'endpoint' | 'headers'>;
  /** What the spans are of, and the version of it. */
  readonly resource: Attributes;
  readonly version: string;
  readonly log: Logger;
  readonly now?: () => number;
}): SpanExporter {
  const { config, log, version, now = () => performance.now() } = options;
  const resource = JSON.stringify({ attributes: toKeyValues(options.resource) });
  const scope = JSON.stringify({ name: 'hub', version });
  const headers = { 'content-type': 'application/json', ...revealed(config.headers) };
  /** In JSON: as objects, they would be many times as many for the collector of garbage to go through. */
  const waiting: string[] = [];
  let dropped = 0;
  let delayMs = 0;
  let nextAtMs = Number.NEGATIVE_INFINITY;
  let limitMs = answerMs;

  /** Gives how many spans were refused. Throws TryLater. */
  async function send(spans: readonly string[]): Promise<number> {
    const scopeSpans = `{"scope":${scope},"spans":[${spans.join()}]}`;
    const body = `{"resourceSpans":[{"resource":${resource},"scopeSpans":[${scopeSpans}]}]}`;
    let answer: Response;
    let text: string;
    try {
      const signal = AbortSignal.timeout(limitMs);
      const redirect = 'manual';
      answer = await fetch(config.endpoint, { method: 'POST', headers, body, signal, redirect });
      text = await answer.text();
    } catch (error) {
      throw new TryLater('it cannot be reached', undefined, error);
    }
    if (retried.has(answer.status)) {
      const afterMs = Number(answer.headers.get('retry-after') ?? Number.NaN) * 1000;
      throw new TryLater(`it answers ${answer.status}`, afterMs > 0 ? afterMs : undefined);
    }
    if (answer.ok) return rejectedIn(text);
    log.warn({ status: answer.status, spans: spans.length }, 'collector refuses traces');
    return spans.length;
  }

  async function work(): Promise<void> {
    if (now() < nextAtMs) return;
    try {
      while (waiting.length > 0) {
        const batch = waiting.slice(0, maxBatch);
        dropped += await send(batch);
        waiting.splice(0, batch.length);
        if (delayMs > 0) log.info({}, 'collector takes traces again');
        delayMs = 0;
      }
    } catch (error) {
      if (!(error instanceof TryLater)) throw error;
      if (delayMs === 0) log.warn({ err: error }, 'collector takes no traces');
      delayMs = Math.min(Math.max(delayMs * 2, firstDelayMs), maxDelayMs);
      // Not all instances at once.
      const waitMs = error.afterMs ?? delayMs * (1 + Math.random() / 2);
      nextAtMs = now() + Math.min(waitMs, maxDelayMs * 5);
    }
  }

  const periodic = createPeriodic({
    intervalMs,
    work,
    onError: (error) => log.warn({ err: error }, 'traces could not be exported'),
  });
  return {
    add(span) {
      if (waiting.length < maxWaiting) waiting.push(JSON.stringify(span));
      else dropped += 1;
    },
    run: periodic.run,
    get dropped() {
      return dropped;
    },
    async [Symbol.asyncDispose]() {
      limitMs = lastMs;
      nextAtMs = Number.NEGATIVE_INFINITY;
      periodic[Symbol.dispose]();
      await Promise.race([periodic.run(), delay(lastMs, undefined, { ref: false })]);
    },
  };
}

function revealed(headers: TracingConfig['headers']): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, value.reveal()]));
}

/** `ExportTraceServiceResponse.partial_success`. */
function rejectedIn(text: string): number {
  try {
    return Number(JSON.parse(text)?.partialSuccess?.rejectedSpans ?? 0) || 0;
  } catch {
    return 0;
  }
}
