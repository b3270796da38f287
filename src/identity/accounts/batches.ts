import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Keyv } from 'keyv';
import type { Logger } from 'pino';
import { forEachAtOnce } from '../../platform/concurrency/for-each-at-once.ts';
import { HubError } from '../../platform/errors.ts';
import { type SavedPhrase, savePhrase, text } from '../../platform/texts/text.ts';

/** How far a batch is. Kept outside the process: any hub on the database can show it. */
export interface BatchReport {
  readonly id: string;
  /** Id of the user who began it. */
  readonly by: string;
  readonly total: number;
  readonly done: number;
  readonly failed: number;
  /** Why, for the first of those that failed. */
  readonly problems: readonly { readonly name: string; readonly message: SavedPhrase }[];
  /** Milliseconds since 1970. */
  readonly startedAt: number;
  readonly updatedAt: number;
  /** Undefined while it goes on. */
  readonly finishedAt?: number;
  /** Whether it ended before its end, because the hub stopped. */
  readonly isCutShort: boolean;
  /** For whom it was done, where that is kept. */
  readonly doneNames?: readonly string[];
  /** For the page that shows it. */
  readonly title: string;
  readonly returnTo: string;
}

/** Work for many users, done in the background a few at a time. */
export interface Batches extends AsyncDisposable {
  /** Throws `too_many_requests` while as many batches as allowed go on here. */
  start(batch: {
    readonly by: string;
    readonly title: string;
    readonly returnTo: string;
    readonly names: readonly string[];
    /** Whether the report says for whom it was done. */
    readonly keepsNames?: boolean;
    /** Does it for one; what it throws is counted and told. `too_many_requests` is tried again. */
    readonly work: (name: string) => Promise<void>;
    /**
     * Does it for several, all or none, where that costs less. When it throws, each of them gets `work`, which
     * finds who it was that could not be had.
     */
    readonly workTogether?: ((names: readonly string[]) => Promise<void>) | undefined;
  }): Promise<{ readonly id: string; readonly finished: Promise<BatchReport> }>;
  /** Undefined for one of another user, and after a day. */
  find(id: string, by: string): Promise<BatchReport | undefined>;
}

const maxBatches = 4;
const atOnce = 4;
/** What others do to the database waits for no more than this. */
const maxBatchSize = 100;
const maxProblems = 20;
const lifetimeMs = 86_400_000;
const reportIntervalMs = 500;
/** Without a word for so long, the hub that worked at it is gone. */
const silenceMs = 30_000;
const maxAttempts = 200;
const maxPauseMs = 3_000;

export function createBatches(deps: {
  readonly reports: Pick<Keyv<BatchReport>, 'get' | 'set'>;
  readonly now: () => number;
  readonly log: Logger;
}): Batches {
  const { reports, now, log } = deps;
  const stopping = new AbortController();
  const running = new Set<Promise<unknown>>();

  async function attempt(work: () => Promise<void>): Promise<void> {
    for (let attempts = 1; ; attempts += 1) {
      try {
        return await work();
      } catch (error) {
        const isBusy = error instanceof HubError && error.code === 'too_many_requests';
        if (!isBusy || attempts === maxAttempts) throw error;
        const pauseMs = Math.min((error.retryAfterSeconds ?? 1) * 1000, maxPauseMs);
        await sleep(pauseMs, undefined, { signal: stopping.signal, ref: false });
      }
    }
  }

  async function run(
    first: BatchReport,
    names: readonly string[],
    { work, workTogether }: Pick<Parameters<Batches['start']>[0], 'work' | 'workTogether'>,
  ): Promise<BatchReport> {
    let report = first;
    const doneNames: string[] = [];
    const change = (more: Partial<BatchReport>) => {
      report = { ...report, ...more, updatedAt: now() };
    };
    const tell = () => reports.set(report.id, report, lifetimeMs);
    const reported = setInterval(() => {
      // Also while one user takes long: it says that the hub is there.
      change({});
      void tell().catch((error: unknown) =>
        log.warn({ err: error }, 'batch progress cannot be reported'),
      );
    }, reportIntervalMs);
    reported.unref();
    const workOne = async (name: string): Promise<void> => {
      if (stopping.signal.aborted) return;
      try {
        await attempt(() => work(name));
        doneNames.push(name);
        change({ done: report.done + 1, ...(first.doneNames && { doneNames }) });
      } catch (error) {
        if (stopping.signal.aborted) return;
        if (!(error instanceof HubError)) log.error({ err: error, user: name }, 'batch failed');
        const message = savePhrase(
          error instanceof HubError ? error.shown.message : text`Something went wrong.`,
        );
        const problems = [...report.problems, { name, message }].slice(0, maxProblems);
        change({ failed: report.failed + 1, problems });
      }
    };
    /** Whether it is done for all of them; false when it is done for none. */
    const isDoneTogether = async (several: readonly string[]): Promise<boolean> => {
      if (workTogether === undefined || several.length < 2) return false;
      try {
        await attempt(() => workTogether(several));
        return true;
      } catch {
        return false;
      }
    };
    const workChunk = async (several: readonly string[]): Promise<void> => {
      if (stopping.signal.aborted) return;
      if (await isDoneTogether(several)) change({ done: report.done + several.length });
      else for (const name of several) await workOne(name);
    };
    try {
      await forEachAtOnce(
        atOnce,
        chunksOf(names, workTogether === undefined ? 1 : maxBatchSize),
        workChunk,
      );
    } finally {
      clearInterval(reported);
    }
    const isCutShort = report.done + report.failed < report.total;
    change({ finishedAt: now(), isCutShort });
    await tell().catch((error: unknown) =>
      log.warn({ err: error }, 'batch progress cannot be reported'),
    );
    return report;
  }

  return {
    async start({ by, title, returnTo, names, keepsNames, work, workTogether }) {
      if (running.size >= maxBatches) {
        throw new HubError(
          'too_many_requests',
          text`Too much is under way for many users already.`,
          {
            hint: text`Wait until one of these has finished.`,
            retryAfterSeconds: 10,
          },
        );
      }
      const startedAt = now();
      const report: BatchReport = {
        id: randomUUID(),
        by,
        total: names.length,
        done: 0,
        failed: 0,
        problems: [],
        startedAt,
        updatedAt: startedAt,
        isCutShort: false,
        title,
        returnTo,
        ...(keepsNames === true && { doneNames: [] }),
      };
      const begun = reports.set(report.id, report, lifetimeMs);
      const finished = begun.then(() => run(report, names, { work, workTogether }));
      running.add(finished);
      void finished.catch(() => {}).then(() => running.delete(finished));
      await begun;
      return { id: report.id, finished };
    },

    async find(id, by) {
      const report = await reports.get(id);
      if (report?.by !== by) return undefined;
      const isLost = report.finishedAt === undefined && now() - report.updatedAt > silenceMs;
      return isLost ? { ...report, finishedAt: report.updatedAt, isCutShort: true } : report;
    },

    async [Symbol.asyncDispose]() {
      stopping.abort();
      await Promise.allSettled(running);
    },
  };
}

function chunksOf(names: readonly string[], length: number): (readonly string[])[] {
  const count = Math.ceil(names.length / length);
  return Array.from({ length: count }, (_, index) =>
    names.slice(index * length, (index + 1) * length),
  );
}
