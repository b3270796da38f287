import type { Logger } from 'pino';
import type { UserStore } from '../../identity/users/user-store.ts';
import { actAsHub } from '../../platform/audit/actor.ts';
import { forEachAtOnce } from '../../platform/concurrency/for-each-at-once.ts';
import { createPeriodic, type Periodic } from '../../platform/concurrency/periodic.ts';
import type { StartTime } from '../../platform/config/start-times-schema.ts';
import { HubError, type HubErrorCode } from '../../platform/errors.ts';
import type { ScheduledStartsStore } from './scheduled-starts-store.ts';
import type { UserServers } from './user-servers.ts';

const minuteMs = 60_000;
const intervalMs = 20_000;
/** A hub that was away at the time makes up for it within this. */
const latestMs = 30 * minuteMs;
/** The hub has no room, is in maintenance, or has lost its database. */
const passing: ReadonlySet<HubErrorCode> = new Set([
  'too_many_requests',
  'unavailable',
  'storage_unavailable',
]);
/** Each waits for the start before it: not all at the same moment. */
const parallelStarts = 8;

/**
 * Starts the servers of groups at the times of `Spawner.start_at`. It keeps nothing: whose server was started or ended since
 * then is not due any more, whichever hub did it.
 */
export function createScheduledStarts(deps: {
  readonly times: readonly StartTime[];
  readonly store: ScheduledStartsStore;
  readonly users: Pick<UserStore, 'findByName'>;
  readonly servers: Pick<UserServers, 'start' | 'launchedName'>;
  readonly log: Logger;
  /** Milliseconds since 1970, by the clock of the database. */
  readonly now: () => number;
}): Periodic {
  const { times, store, users, servers, log, now } = deps;
  /** Whose start of the last time was tried by this hub, by the place of the time in the list. */
  const tried = new Map<number, { readonly sinceMs: number; readonly names: Set<string> }>();

  async function startDue(place: number, time: StartTime): Promise<void> {
    const sinceMs = lastTime(time, now());
    if (sinceMs === undefined) return;
    const before = tried.get(place);
    const names = before?.sinceMs === sinceMs ? before.names : new Set<string>();
    tried.set(place, { sinceMs, names });
    for (;;) {
      const due = await store.listDue(time.groups, servers.launchedName, sinceMs);
      // In any order: several hubs share them.
      const left = due.filter((name) => !names.has(name)).toSorted(() => Math.random() - 0.5);
      const next = left.slice(0, parallelStarts);
      if (next.length === 0) return;
      const isOpen = await Promise.all(next.map((name) => start(name, time)));
      for (const [index, name] of next.entries()) if (isOpen[index]) names.add(name);
      // The hub has no room now: the next round asks again.
      if (isOpen.includes(false)) return;
    }
  }

  /** False where it is to be tried again. */
  async function start(name: string, { profile }: StartTime): Promise<boolean> {
    try {
      const user = await users.findByName(name);
      if (user === undefined) return true;
      const { ready } = await servers.start({
        user,
        serverName: servers.launchedName,
        ...(profile !== undefined && { userOptions: { profile } }),
        mayStartInMaintenance: false,
      });
      await ready;
    } catch (error) {
      if (error instanceof HubError && passing.has(error.code)) return false;
      log.warn({ err: error, user: name }, 'server could not be started ahead');
    }
    return true;
  }

  return createPeriodic({
    intervalMs: times.length === 0 ? 2 ** 30 : intervalMs,
    work: () =>
      actAsHub(() =>
        forEachAtOnce(times.length, times.entries(), ([place, time]) => startDue(place, time)),
      ),
    onError: (error) => log.warn({ err: error }, 'could not look for servers to start ahead'),
  });
}

/** When such a time was last, to the minute; undefined where that is too long ago to make up for it. */
export function lastTime(
  { days, time, time_zone: timeZone }: Pick<StartTime, 'days' | 'time' | 'time_zone'>,
  nowMs: number,
): number | undefined {
  const clock = new Intl.DateTimeFormat('en-US', {
    timeZone,
    weekday: 'short',
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
  });
  const firstMs = Math.floor(nowMs / minuteMs) * minuteMs;
  for (let atMs = firstMs; atMs > nowMs - latestMs; atMs -= minuteMs) {
    const parts = new Map(clock.formatToParts(atMs).map(({ type, value }) => [type, value]));
    const day = parts.get('weekday')?.toLowerCase();
    const isDay = days.some((each) => each === day);
    if (isDay && `${parts.get('hour')}:${parts.get('minute')}` === time) return atMs;
  }
  return undefined;
}
