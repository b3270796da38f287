import { AsyncLocalStorage } from 'node:async_hooks';
import { randomDigits } from './random-digits.ts';
import { type TraceParent, traceHeaders } from './trace-context.ts';

/** Names to values; what is undefined is left out. */
export type Attributes = Readonly<Record<string, string | number | undefined>>;

/** As OTLP has them (`Span.SpanKind`). */
const kinds = { internal: 1, server: 2, client: 3 } as const;
const errorStatus = 2;

/** A span that is over, as OTLP writes it in JSON (`opentelemetry.proto.trace.v1.Span`). */
export interface FinishedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly traceState?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: ReturnType<typeof toKeyValues>;
  readonly status?: { readonly code: number };
}

/** A span that is not over. */
interface Span {
  readonly id: string;
  readonly name: string;
  readonly kind: keyof typeof kinds;
  readonly parentId: string | undefined;
  readonly startedAtMs: number;
}

/** A request in its trace. Where the trace is not recorded, it only passes on the ids. */
export class Trace {
  readonly traceId: string;
  readonly #isSampled: boolean;
  readonly #state: string | undefined;
  readonly #finish: (span: FinishedSpan) => void;
  readonly #root: Span;
  #route: string | undefined;
  #forward: Span | undefined;

  constructor(options: {
    /** Its second half is not all zeros: without a parent, that is the id of the first span. */
    readonly traceId: string;
    readonly isSampled: boolean;
    readonly parent: TraceParent | undefined;
    readonly method: string;
    /** By the clock of `performance.now()`. */
    readonly startedAtMs: number;
    readonly finish: (span: FinishedSpan) => void;
  }) {
    this.traceId = options.traceId;
    this.#isSampled = options.isSampled;
    this.#state = options.parent?.state;
    this.#finish = options.finish;
    const { traceId, method, parent, startedAtMs } = options;
    this.#root = {
      id: parent === undefined ? traceId.slice(16) : randomDigits(16),
      name: method,
      kind: 'server',
      parentId: parent?.spanId,
      startedAtMs,
    };
  }

  /** Notes that it is decided what becomes of the request, and the route that it belongs to. */
  decided(verdict: string, route: string | undefined): void {
    if (!this.#isSampled) return;
    this.#route = route;
    const { startedAtMs } = this.#root;
    this.#end({ ...this.#begin('guard', 'internal'), startedAtMs }, { 'hub.verdict': verdict });
  }

  /** Headers for the upstream, names and values in turn. The span of its answer ends with the request. */
  forwarding(): string[] {
    this.#forward ??= this.#isSampled ? this.#begin('forward', 'client') : this.#root;
    return this.#headersIn(this.#forward);
  }

  /** Notes what ended now. */
  ended(name: string, seconds: number, attributes: Attributes, isError: boolean): void {
    const startedAtMs = performance.now() - seconds * 1000;
    this.#end({ ...this.#begin(name, 'internal'), startedAtMs }, attributes, isError);
  }

  /** Asks something of another program, which gets the headers. Throws what `work` throws. */
  async asking<T>(
    name: string,
    work: (headers: Readonly<Record<string, string>>) => Promise<T>,
  ): Promise<T> {
    const span = this.#begin(name, 'client');
    const [parentName = '', parent = '', stateName, state = ''] = this.#headersIn(span);
    let isError = true;
    try {
      const answer = await work({ [parentName]: parent, ...(stateName && { [stateName]: state }) });
      isError = false;
      return answer;
    } finally {
      this.#end(span, {}, isError);
    }
  }

  /** Ends the span of the request itself. */
  end(status: number, attributes: Attributes): void {
    const route = this.#route;
    const isError = status >= 500;
    if (this.#forward !== undefined) this.#end(this.#forward, { 'http.route': route }, isError);
    this.#end(
      {
        ...this.#root,
        name: route === undefined ? this.#root.name : `${this.#root.name} ${route}`,
      },
      {
        'http.request.method': this.#root.name,
        'http.response.status_code': status,
        'http.route': route,
        ...attributes,
      },
      isError,
    );
  }

  #begin(name: string, kind: Span['kind']): Span {
    const startedAtMs = performance.now();
    return { id: randomDigits(16), name, kind, parentId: this.#root.id, startedAtMs };
  }

  #headersIn({ id }: Span): string[] {
    const [isSampled, state] = [this.#isSampled, this.#state];
    return traceHeaders({ traceId: this.traceId, spanId: id, isSampled, state });
  }

  #end(span: Span, attributes: Attributes, isError = false): void {
    if (!this.#isSampled) return;
    this.#finish({
      traceId: this.traceId,
      spanId: span.id,
      ...(span.parentId !== undefined && { parentSpanId: span.parentId }),
      ...(this.#state !== undefined && { traceState: this.#state }),
      name: span.name,
      kind: kinds[span.kind],
      startTimeUnixNano: toUnixNano(span.startedAtMs),
      endTimeUnixNano: toUnixNano(performance.now()),
      attributes: toKeyValues(attributes),
      ...(isError && { status: { code: errorStatus } }),
    });
  }
}

/** The trace of the request on whose behalf something is done, where it is recorded. */
export const currentTrace = new AsyncLocalStorage<Trace>();

/** As OTLP writes attributes (`opentelemetry.proto.common.v1.KeyValue`); 64-bit numbers are text in its JSON. */
export function toKeyValues(attributes: Attributes) {
  return Object.entries(attributes).flatMap(([key, value]) => {
    if (value === undefined) return [];
    const written =
      typeof value === 'number' ? { intValue: String(value) } : { stringValue: value };
    return [{ key, value: written }];
  });
}

/** More digits than a number holds. */
function toUnixNano(ms: number): string {
  return `${Math.round((performance.timeOrigin + ms) * 1000)}000`;
}
