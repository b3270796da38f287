/** What is kept of how busy something is, in the order in which it is stored. */
export const loadFigures = [
  /** Cores in use, 1 is one core. */
  'cpuCores',
  'memoryBytes',
  'requestsPerSecond',
  /** Until an answer began, on average. */
  'responseSeconds',
  /** Open, on average. */
  'webSockets',
] as const;

export type LoadFigure = (typeof loadFigures)[number];

/** What is known of one moment; a figure that was not measured is left out. */
export type Load = { readonly [Figure in LoadFigure]?: number | undefined };

/** What was counted between two moments. */
export interface LoadSample {
  readonly cpuCores?: number | undefined;
  readonly memoryBytes?: number | undefined;
  readonly requests?: number | undefined;
  /** Answers that began, and how long those who asked had waited for them, all together. */
  readonly answers?: number | undefined;
  readonly answerSeconds?: number | undefined;
  readonly webSockets?: number | undefined;
}

/** The last hour in steps of 10 seconds, or the last day in steps of 5 minutes. */
export type LoadSpan = 'hour' | 'day';

/** Figures of equal steps, oldest first, the last one ending now; null where nothing was measured. */
export interface LoadSeries {
  readonly stepSeconds: number;
  /** All of one length, shorter than the span for what is younger. */
  readonly figures: { readonly [Figure in LoadFigure]: readonly (number | null)[] };
}

/** Steps of each span: how long one is, and how many are kept. */
export const loadSpans = {
  hour: { stepSeconds: 10, steps: 360 },
  day: { stepSeconds: 300, steps: 288 },
} as const satisfies Record<LoadSpan, { readonly stepSeconds: number; readonly steps: number }>;

const stepsOfHourInDay = loadSpans.day.stepSeconds / loadSpans.hour.stepSeconds;
const width = loadFigures.length;
const firstRows = 32;

/**
 * What one figure is divided by before it is kept: a half-precision number holds three digits of up to
 * 65,504, and a hundredth of a million bytes is more than a plot shows.
 */
const scales: readonly number[] = [1, 2 ** 30, 1, 1, 1];
const largest = 65_504;

/** Rows of figures, of which the newest are kept. It grows as it is filled: most are of young things. */
class Ring {
  readonly #max: number;
  #rows = new Float16Array(firstRows * width);
  /** Of the oldest row. */
  #first = 0;
  #count = 0;

  constructor(max: number) {
    this.#max = max;
  }

  push(load: Load): void {
    const capacity = this.#rows.length / width;
    if (this.#count === capacity && capacity < this.#max) this.#grow(capacity * 2);
    const isFull = this.#count === this.#rows.length / width;
    const row = isFull ? this.#first : this.#count;
    if (isFull) this.#first = (this.#first + 1) % this.#count;
    else this.#count += 1;
    for (const [column, figure] of loadFigures.entries()) {
      const value = load[figure];
      this.#rows[row * width + column] =
        value === undefined ? Number.NaN : Math.min(largest, value / (scales[column] ?? 1));
    }
  }

  /** The figure of a column, oldest first. */
  column(column: number): (number | null)[] {
    return Array.from({ length: this.#count }, (_, index) => this.#at(index, column) ?? null);
  }

  last(): Load {
    const figures = loadFigures.map((figure, column) => [
      figure,
      this.#at(this.#count - 1, column),
    ]);
    return Object.fromEntries(figures) as Load;
  }

  get bytes(): number {
    return this.#rows.byteLength;
  }

  #at(index: number, column: number): number | undefined {
    if (index < 0) return undefined;
    const row = (this.#first + index) % Math.max(1, this.#count);
    const value = this.#rows[row * width + column] ?? Number.NaN;
    return Number.isNaN(value) ? undefined : value * (scales[column] ?? 1);
  }

  #grow(rows: number): void {
    const grown = new Float16Array(Math.min(rows, this.#max) * width);
    grown.set(this.#rows);
    this.#rows = grown;
  }
}

const averagedFigures = ['cpuCores', 'memoryBytes', 'requestsPerSecond', 'webSockets'] as const;
type AveragedFigure = (typeof averagedFigures)[number];

/** Adds up samples until they make one step of the day. */
class Sum {
  readonly #samples = { cpuCores: 0, memoryBytes: 0, requestsPerSecond: 0, webSockets: 0 };
  readonly #counts = { cpuCores: 0, memoryBytes: 0, requestsPerSecond: 0, webSockets: 0 };
  #answers = 0;
  #answerSeconds = 0;
  steps = 0;

  add(load: Load, { answers = 0, answerSeconds = 0 }: LoadSample): void {
    this.steps += 1;
    this.#answers += answers;
    this.#answerSeconds += answerSeconds;
    for (const figure of averagedFigures) {
      const value = load[figure];
      if (value === undefined) continue;
      this.#samples[figure] += value;
      this.#counts[figure] += 1;
    }
  }

  mean(): Load {
    const meanOf = (figure: AveragedFigure) =>
      this.#counts[figure] === 0 ? undefined : this.#samples[figure] / this.#counts[figure];
    return {
      cpuCores: meanOf('cpuCores'),
      memoryBytes: meanOf('memoryBytes'),
      requestsPerSecond: meanOf('requestsPerSecond'),
      responseSeconds: this.#answers === 0 ? undefined : this.#answerSeconds / this.#answers,
      webSockets: meanOf('webSockets'),
    };
  }
}

/** The past of one thing: 6.5 kB when it is a day old. */
class History {
  readonly #hour = new Ring(loadSpans.hour.steps);
  readonly #day = new Ring(loadSpans.day.steps);
  #sum = new Sum();
  /** Of the last sample, by the monotonic clock. */
  lastAtMs: number | undefined;

  record(sample: LoadSample, seconds: number, nowMs: number): void {
    const missed = this.#stepsSince(nowMs) - 1;
    for (let step = 0; step < missed; step += 1) this.#push({}, {});
    this.lastAtMs = nowMs;
    const { cpuCores, memoryBytes, requests, answers = 0, answerSeconds = 0, webSockets } = sample;
    const load = {
      cpuCores,
      memoryBytes,
      requestsPerSecond: requests === undefined ? undefined : requests / seconds,
      responseSeconds: answers === 0 ? undefined : answerSeconds / answers,
      webSockets,
    };
    this.#push(load, sample);
  }

  read(span: LoadSpan, nowMs: number): LoadSeries {
    const { stepSeconds, steps } = loadSpans[span];
    const missing = Math.max(
      0,
      Math.floor(((nowMs - (this.lastAtMs ?? nowMs)) / 1000 - 5) / stepSeconds),
    );
    const partial = span === 'day' && this.#sum.steps > 0 ? this.#sum.mean() : undefined;
    const ring = span === 'hour' ? this.#hour : this.#day;
    const figures = eachFigure((figure, column) => {
      const kept: (number | null)[] = ring.column(column);
      if (partial !== undefined) kept.push(partial[figure] ?? null);
      for (let step = 0; step < Math.min(missing, steps); step += 1) kept.push(null);
      return kept.slice(-steps).map(shortened);
    });
    return { stepSeconds, figures };
  }

  get last(): Load {
    return this.#hour.last();
  }

  get bytes(): number {
    return this.#hour.bytes + this.#day.bytes;
  }

  /** How many steps of the hour have passed since the last sample; timers are not exact. */
  #stepsSince(nowMs: number): number {
    if (this.lastAtMs === undefined) return 1;
    const steps = Math.round((nowMs - this.lastAtMs) / 1000 / loadSpans.hour.stepSeconds);
    return Math.min(steps, loadSpans.day.steps * stepsOfHourInDay);
  }

  #push(load: Load, sample: LoadSample): void {
    this.#hour.push(load);
    this.#sum.add(load, sample);
    if (this.#sum.steps < stepsOfHourInDay) return;
    this.#day.push(this.#sum.mean());
    this.#sum = new Sum();
  }
}

/** Four digits are more than half precision has, and less to send. */
function shortened(value: number | null): number | null {
  return value === null ? null : Number(value.toPrecision(4));
}

/** The past of servers, services and the hub itself, in memory alone and bounded. */
export interface LoadHistories {
  /** Adds what was counted in the last `seconds`, about ten of them. */
  record(key: string, sample: LoadSample, seconds: number): void;
  /** Undefined for what has no past here. */
  read(key: string, span: LoadSpan): LoadSeries | undefined;
  /** What was measured last, if that is not long ago. */
  latest(key: string): Load | undefined;
  /** Forgets what has been silent for an hour. */
  prune(): void;
  readonly size: number;
  /** Taken by the figures. */
  readonly bytes: number;
}

/** Together they take some 30 MB. */
const maxHistories = 4_500;
const silentMs = 3_600_000;
/** A figure that is older says nothing of now. */
const freshMs = 30_000;

export function createLoadHistories(options: {
  /** Milliseconds on a monotonic clock. */
  readonly now: () => number;
  readonly max?: number;
}): LoadHistories {
  const { now, max = maxHistories } = options;
  const histories = new Map<string, History>();

  /** Room for one more: at the cost of what has been silent for longest. */
  function makeRoom(): boolean {
    if (histories.size < max) return true;
    let oldest: string | undefined;
    let oldestMs = now() - freshMs;
    for (const [key, { lastAtMs = 0 }] of histories) {
      if (lastAtMs >= oldestMs) continue;
      oldest = key;
      oldestMs = lastAtMs;
    }
    return oldest !== undefined && histories.delete(oldest);
  }

  return {
    record(key, sample, seconds) {
      let history = histories.get(key);
      if (history === undefined) {
        if (!makeRoom()) return;
        history = new History();
        histories.set(key, history);
      }
      history.record(sample, seconds, now());
    },
    read: (key, span) => histories.get(key)?.read(span, now()),
    latest(key) {
      const history = histories.get(key);
      const isFresh = history?.lastAtMs !== undefined && now() - history.lastAtMs <= freshMs;
      return isFresh ? history.last : undefined;
    },
    prune() {
      for (const [key, { lastAtMs = 0 }] of histories) {
        if (now() - lastAtMs > silentMs) histories.delete(key);
      }
    },
    get size() {
      return histories.size;
    },
    get bytes() {
      return [...histories.values()].reduce((sum, { bytes }) => sum + bytes, 0);
    },
  };
}

/** Key of the past of a user's server, a service, and the process that keeps it. */
export const loadKeys = {
  server: (serverId: string) => `server:${serverId}`,
  service: (name: string) => `service:${name}`,
  instance: 'instance',
} as const;

/**
 * Adds up what several instances know of one thing: each counts the requests that pass through it. Answers
 * count by how many there were.
 */
export function addLoads(parts: readonly LoadSeries[]): LoadSeries | undefined {
  const [first, ...others] = parts;
  if (first === undefined || others.length === 0) return first;
  const length = Math.max(...parts.map(({ figures }) => figures.cpuCores.length));
  const at = ({ figures }: LoadSeries, figure: LoadFigure, index: number): number | null =>
    figures[figure].at(index - length) ?? null;
  const sum = (figure: LoadFigure, index: number): number | null => {
    const known = parts.flatMap((part) => {
      const isThere = length - index <= part.figures[figure].length;
      const value = isThere ? at(part, figure, index) : null;
      return value === null ? [] : [{ part, value }];
    });
    if (known.length === 0) return null;
    if (figure !== 'responseSeconds') {
      return shortened(known.reduce((total, { value }) => total + value, 0));
    }
    const weights = known.map(({ part }) => at(part, 'requestsPerSecond', index) ?? 0);
    const weight = weights.reduce((total, each) => total + each, 0);
    const weighted = known.reduce(
      (total, { value }, place) => total + value * (weight === 0 ? 1 : (weights[place] ?? 0)),
      0,
    );
    return shortened(weighted / (weight === 0 ? known.length : weight));
  };
  return {
    stepSeconds: first.stepSeconds,
    figures: eachFigure((figure) => Array.from({ length }, (_, index) => sum(figure, index))),
  };
}

function eachFigure<Value>(figureOf: (figure: LoadFigure, column: number) => Value): {
  [Figure in LoadFigure]: Value;
} {
  return {
    cpuCores: figureOf('cpuCores', 0),
    memoryBytes: figureOf('memoryBytes', 1),
    requestsPerSecond: figureOf('requestsPerSecond', 2),
    responseSeconds: figureOf('responseSeconds', 3),
    webSockets: figureOf('webSockets', 4),
  };
}
