import type { Logger } from 'pino';
import { createLimiter } from '../../platform/concurrency/limiter.ts';
import { createPeriodic, type Periodic } from '../../platform/concurrency/periodic.ts';
import { isStorageUnavailable } from '../../platform/errors.ts';
import type { LimitRecord, ServerLimitsStore, WatchedServer } from './server-row-store.ts';
import { type ComingStop, comingStop, type LimitKind, type LimitRules } from './time-limits.ts';

/** Stops the servers of this instance that have reached a time limit. */
export interface LimitWatch extends AsyncDisposable {
  /** Looks at all of them now. Never throws. */
  run(): Promise<void>;
  /** Looks at them in a moment: there is a new one, whose limits are not known yet. */
  runSoon(): void;
}

/** What was known of a server when all were looked at before. */
interface Known {
  readonly startedAt: number;
  readonly profile: string | undefined;
}

const maxIntervalMs = 30_000;
const shortestIntervalMs = 1_000;
const soonMs = 1_000;
/** Servers and gateways tell within this time of a hub that was away, or of another one, in what use they were. */
const reportsWithinMs = 10 * 60_000;
/** A clock that goes wrong by more between two looks was set. */
const minJumpMs = 60_000;
/** Without a look for so much longer than planned, it is not known what was used in between. */
const maxPauseMs = 60_000;
const parallelStops = 32;
/** How soon a paused server goes on that is used. */
const wakeIntervalMs = 500;

export function createLimitWatch(deps: {
  readonly rules: LimitRules;
  readonly store: ServerLimitsStore;
  readonly instanceId: string;
  /** How long before it is stopped the user of a server is warned. */
  readonly warningMs: number;
  /** How much later the use of a server may be stored that another process of the hub saw. */
  readonly activityLagMs: number;
  /** Stores what was used, as far as it is known here. */
  readonly flushActivity: () => Promise<void>;
  /** Asks servers that would be stopped for being idle whether they work; those that do are used. */
  readonly lastLook: (serverIds: readonly string[]) => Promise<void>;
  /** Stops a server that runs here, or pauses it; resolves when it is stopped. */
  readonly stop: (serverId: string, reason: LimitKind) => Promise<'paused' | 'stopped'>;
  /** Lets a paused server go on that is used again. */
  readonly wake: (serverId: string) => Promise<void>;
  /** When each server was used last as far as is known here, by the monotonic clock. */
  readonly uses: () => Iterable<readonly [serverId: string, atMs: number]>;
  readonly log: Logger;
  /** A clock that no one sets. */
  readonly monotonic?: () => number;
}): LimitWatch {
  const { rules, store, instanceId, log, monotonic = () => performance.now() } = deps;
  const intervalMs = Math.min(maxIntervalMs, Math.max(shortestIntervalMs, rules.shortestMs / 100));
  const stopping = createLimiter(parallelStops);
  const ends = new Map<string, Promise<void>>();
  let known: ReadonlyMap<string, Known> = new Map();
  let last: { readonly nowMs: number; readonly atMs: number } | undefined;
  /** Since when servers are known to be paused. */
  const paused = new Map<string, number>();
  let waking: Periodic | undefined;
  let timer: NodeJS.Timeout | undefined;
  let isFailing = false;
  let isClosed = false;

  const periodic = createPeriodic({
    intervalMs: rules.isAny ? intervalMs : 2 ** 30,
    async work() {
      if (isClosed) return;
      await look();
      isFailing = false;
    },
    onError(error) {
      // Said once; it is tried again soon.
      if (!isFailing) log.warn({ err: error }, 'could not look for servers over a time limit');
      isFailing = true;
      if (!isStorageUnavailable(error)) return;
      // What was used meanwhile could not be stored either.
      last = undefined;
    },
  });

  /** Looks for use of paused servers, while there are any; a request waits for it. */
  function watchPaused(): void {
    if (paused.size === 0 || isClosed) {
      waking?.[Symbol.dispose]();
      waking = undefined;
      return;
    }
    // Many looks at what is known here cost less than one question to the database.
    waking ??= createPeriodic({
      intervalMs: wakeIntervalMs,
      async work() {
        for (const [id, atMs] of deps.uses()) {
          if (isClosed || atMs < (paused.get(id) ?? Number.POSITIVE_INFINITY)) continue;
          await deps.wake(id);
          paused.delete(id);
        }
        watchPaused();
      },
      onError: (error) => log.warn({ err: error }, 'could not wake a paused server'),
    });
  }

  async function look(): Promise<void> {
    if (rules.isAny) await deps.flushActivity();
    const askedAtMs = monotonic();
    const knownPaused = new Map(paused);
    const { servers, nowMs } = await store.list(instanceId, rules.groupNames);
    const atMs = monotonic();
    if (nowMs === undefined) {
      known = new Map();
      last = undefined;
      return;
    }
    const isPaused = new Set(servers.filter((each) => each.pausedAt !== null).map(({ id }) => id));
    // One that was paused while they were listed is not in the list as that.
    for (const [id, sinceMs] of knownPaused)
      if (!isPaused.has(id) && paused.get(id) === sinceMs) paused.delete(id);
    for (const id of isPaused) paused.set(id, paused.get(id) ?? askedAtMs);
    watchPaused();
    const jumpMs = jumpTo(nowMs, atMs, atMs - askedAtMs);
    const isUnwatched = last === undefined || atMs - last.atMs > intervalMs + maxPauseMs;
    const before = known;
    known = await learn(servers, before);
    const kept: (LimitRecord & { readonly keptBefore: number | null })[] = [];
    const over: (LimitRecord & { readonly reason: LimitKind })[] = [];
    for (const server of servers) {
      const isNew = before.get(server.id)?.startedAt !== server.startedAt;
      const record = recordOf(server, { nowMs, jumpMs, isNew, isUnwatched });
      if (fields.some((field) => record[field] !== server[field])) {
        kept.push({ ...record, keptBefore: server.keptUntil });
      }
      if (server.pausedAt !== null && (record.lastActivityAt ?? 0) > server.pausedAt) {
        await deps.wake(server.id);
        continue;
      }
      const stop = stopOf(server, record);
      const lagMs = stop?.reason === 'idle_timeout' ? deps.activityLagMs : 0;
      if (stop === undefined || stop.at.getTime() + lagMs > nowMs) continue;
      over.push({ ...record, reason: stop.reason });
    }
    await store.keep(kept);
    last = { nowMs, atMs };
    const idle = over.filter(({ reason }) => reason === 'idle_timeout').map(({ id }) => id);
    if (idle.length > 0) {
      await deps.lastLook(idle);
      await deps.flushActivity();
    }
    const reasons = new Map(over.map(({ id, reason }) => [id, reason]));
    for (const id of await store.end(instanceId, over)) {
      const reason = reasons.get(id);
      if (reason !== undefined && !ends.has(id)) ends.set(id, end(id, reason));
    }
  }

  /** By how much the time of day was set since the look before; 0 where it was not. */
  function jumpTo(nowMs: number, atMs: number, takenMs: number): number {
    if (last === undefined) return 0;
    const jumpMs = nowMs - last.nowMs - (atMs - last.atMs);
    if (Math.abs(jumpMs) <= minJumpMs + takenMs) return 0;
    log.warn(
      { seconds: Math.round(jumpMs / 1000) },
      'system clock changed, time limits keep counting',
    );
    return Math.round(jumpMs);
  }

  /** The profile of a server is that of its start: it is read once. */
  async function learn(
    servers: readonly WatchedServer[],
    before: ReadonlyMap<string, Known>,
  ): Promise<ReadonlyMap<string, Known>> {
    const isKnown = ({ id, startedAt }: WatchedServer) => before.get(id)?.startedAt === startedAt;
    const others = servers.filter((server) => !isKnown(server)).map(({ id }) => id);
    const profiles =
      rules.hasLimitsByProfile && others.length > 0 ? await store.profilesOf(others) : new Map();
    return new Map(
      servers.map((server) => {
        const { id, startedAt } = server;
        const profile = isKnown(server) ? before.get(id)?.profile : profiles.get(id);
        return [id, { startedAt, profile }];
      }),
    );
  }

  /** What is to be stored of the time of a server. */
  function recordOf(
    server: WatchedServer,
    seen: {
      readonly nowMs: number;
      readonly jumpMs: number;
      readonly isNew: boolean;
      readonly isUnwatched: boolean;
    },
  ): LimitRecord {
    const { nowMs, jumpMs, isNew } = seen;
    const limits = rules.of(known.get(server.id)?.profile, server.groups);
    const idleTimeoutMs = limits.idleTimeoutMs ?? null;
    const maxAgeMs = limits.maxAgeMs ?? null;
    let { lastActivityAt, idleFrom, ageFrom, keptUntil } = server;
    // A time of the future, from a clock that was set since, would keep it for ever.
    if (lastActivityAt !== null && lastActivityAt > nowMs + minJumpMs) lastActivityAt = nowMs;
    if (idleFrom !== null && idleFrom > nowMs) idleFrom = nowMs;
    if (keptUntil !== null) {
      if (!isNew) keptUntil += jumpMs;
      // What is allowed now counts for those that are kept, too.
      keptUntil = Math.min(keptUntil, nowMs + rules.maxKeptMs);
      if (keptUntil <= nowMs) keptUntil = null;
    }
    // With a clock that is set, the server gets no older, nor younger.
    if (jumpMs !== 0) ageFrom = isNew ? nowMs : (ageFrom ?? server.startedAt) + jumpMs;
    const bornMs = ageFrom ?? server.startedAt;
    if (bornMs > nowMs) ageFrom = nowMs;

    const isChanged =
      idleTimeoutMs !== server.idleTimeoutMs || maxAgeMs !== server.maxAgeMs || jumpMs !== 0;
    if (!isNew && !seen.isUnwatched && !isChanged) {
      return {
        id: server.id,
        idleTimeoutMs,
        maxAgeMs,
        idleFrom,
        ageFrom,
        keptUntil,
        lastActivityAt,
      };
    }
    // Its use may still be told, and its user is to be warned.
    if (idleTimeoutMs !== null) {
      const leftMs = Math.min(idleTimeoutMs, Math.max(reportsWithinMs, deps.warningMs));
      const minMs = nowMs - idleTimeoutMs + leftMs;
      const usedMs = Math.max(lastActivityAt ?? server.startedAt, idleFrom ?? 0);
      if (usedMs < minMs) idleFrom = minMs;
    }
    if (maxAgeMs !== null) {
      const minMs = nowMs - maxAgeMs + Math.min(maxAgeMs, deps.warningMs);
      if ((ageFrom ?? server.startedAt) < minMs) ageFrom = minMs;
    }
    return { id: server.id, idleTimeoutMs, maxAgeMs, idleFrom, ageFrom, keptUntil, lastActivityAt };
  }

  async function end(id: string, reason: LimitKind): Promise<void> {
    try {
      await stopping(async () => {
        if (isClosed) return;
        const atMs = monotonic();
        if ((await deps.stop(id, reason)) === 'stopped') return;
        paused.set(id, atMs);
        watchPaused();
      });
    } catch (error) {
      log.error({ err: error, serverId: id }, 'server over time limit could not be stopped');
    } finally {
      ends.delete(id);
    }
  }

  return {
    run: () => periodic.run(),
    runSoon() {
      if (timer !== undefined || isClosed) return;
      timer = setTimeout(() => {
        timer = undefined;
        void periodic.run();
      }, soonMs);
      timer.unref();
    },
    async [Symbol.asyncDispose]() {
      isClosed = true;
      clearTimeout(timer);
      await waking?.[Symbol.asyncDispose]();
      await periodic[Symbol.asyncDispose]();
      await Promise.all(ends.values());
    },
  };
}

const fields = [
  'idleTimeoutMs',
  'maxAgeMs',
  'idleFrom',
  'ageFrom',
  'keptUntil',
  'lastActivityAt',
] as const satisfies readonly (keyof LimitRecord)[];

function stopOf(
  { startedAt, pausedAt }: WatchedServer,
  record: LimitRecord,
): ComingStop | undefined {
  return comingStop({
    state: 'running',
    startedAt: new Date(startedAt),
    pausedAt: dateOf(pausedAt),
    lastActivityAt: dateOf(record.lastActivityAt),
    limits: {
      idleTimeoutMs: record.idleTimeoutMs ?? undefined,
      maxAgeMs: record.maxAgeMs ?? undefined,
      idleFrom: dateOf(record.idleFrom),
      ageFrom: dateOf(record.ageFrom),
      keptUntil: dateOf(record.keptUntil),
    },
  });
}

function dateOf(ms: number | null): Date | undefined {
  return ms === null ? undefined : new Date(ms);
}
