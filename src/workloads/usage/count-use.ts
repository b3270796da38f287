import type { SpawnerConfig } from '../../platform/config/config.ts';
import type { ResourceUsage } from '../../plugin/host/spawner.ts';

/** What servers used, and what it cost by the prices of its time. */
export interface Amounts {
  readonly wallSeconds: number;
  readonly cpuSeconds: number;
  readonly gibSeconds: number;
  readonly gpuSeconds: number;
  readonly cost: number;
}

export const amountKeys = [
  'wallSeconds',
  'cpuSeconds',
  'gibSeconds',
  'gpuSeconds',
  'cost',
] as const satisfies readonly (keyof Amounts)[];

/** Whose a server is. */
export interface Subject {
  readonly serverName: string;
  readonly userId: string;
  readonly userName: string;
  readonly groups: readonly { readonly id: string; readonly name: string }[];
  /** Empty for none. */
  readonly profile: string;
  readonly engine: string;
}

/** A server's run, as far as its use is counted. */
export interface Meter {
  readonly serverId: string;
  readonly startedAt: number;
  /** By the clock of the database; undefined before it was counted first. */
  readonly countedAt: number | undefined;
  /** What the counter of its engine said then. */
  readonly cpuSeconds: number | undefined;
}

/** What a server uses now. */
export interface Reading {
  readonly usage: Pick<ResourceUsage, 'cpuCores' | 'cpuSeconds' | 'memoryBytes'> | undefined;
  readonly gpus: number;
  /** Then it keeps its memory, and nothing else. */
  readonly isPaused?: boolean;
}

/** What the figures of CPU are from: a counter of the engine, samples, or nothing, so that there is time alone. */
type UseSource = 'counter' | 'sample' | 'time';

/** `Spawner.prices`: what an hour of each costs. */
export type Prices = Omit<SpawnerConfig['prices'], 'currency'>;

/** What an hour costs with a profile. */
export function pricesOf(
  profile: string,
  { prices, profiles }: Pick<SpawnerConfig, 'prices' | 'profiles'>,
): Prices {
  const own = profiles.find(({ name }) => name === profile)?.prices;
  return {
    cpu_hour: own?.cpu_hour ?? prices.cpu_hour,
    gib_hour: own?.gib_hour ?? prices.gib_hour,
    gpu_hour: own?.gpu_hour ?? prices.gpu_hour,
    server_hour: own?.server_hour ?? prices.server_hour,
  };
}

/** Use of a server within an hour (UTC) that begins at `at`. */
export interface Use {
  readonly at: number;
  readonly source: UseSource;
  readonly amounts: Amounts;
}

export const hourMs = 3_600_000;
const bytesPerGib = 2 ** 30;
/** A longer time in which no hub ran is not counted: the clock may have been set. */
const maxElapsedMs = 7 * 24 * hourMs;

/**
 * What a run used in the time that ends now, by hours. A counter that is lower than it was began again at 0, as that of
 * a container that was restarted.
 */
export function countUse(
  { cpuSeconds: before }: Pick<Meter, 'cpuSeconds'>,
  { usage, gpus, isPaused = false }: Reading,
  time: { readonly nowMs: number; readonly elapsedMs: number },
  prices: Prices,
): readonly Use[] {
  const elapsedMs = Math.min(Math.max(0, time.elapsedMs), maxElapsedMs);
  const seconds = elapsedMs / 1000;
  const activeSeconds = isPaused ? 0 : seconds;
  const counter = usage?.cpuSeconds;
  let source: UseSource = 'time';
  let cpuSeconds = 0;
  if (counter !== undefined) {
    source = 'counter';
    cpuSeconds = before !== undefined && counter >= before ? counter - before : counter;
  } else if (before !== undefined) {
    // An engine that does not answer for once: the next reading has it all.
    source = 'counter';
  } else if (usage !== undefined) {
    source = 'sample';
    cpuSeconds = usage.cpuCores * activeSeconds;
  }
  const whole = {
    wallSeconds: activeSeconds,
    cpuSeconds,
    gibSeconds: ((usage?.memoryBytes ?? 0) / bytesPerGib) * seconds,
    gpuSeconds: gpus * activeSeconds,
  };
  const cost =
    (whole.wallSeconds * prices.server_hour +
      whole.cpuSeconds * prices.cpu_hour +
      whole.gibSeconds * prices.gib_hour +
      whole.gpuSeconds * prices.gpu_hour) /
    3600;
  return hoursOf(time.nowMs - elapsedMs, time.nowMs).map(({ at, part }) => ({
    at,
    source,
    amounts: scale({ ...whole, cost }, part),
  }));
}

/** The hours of a time, each with its part of it. */
function hoursOf(fromMs: number, toMs: number): { readonly at: number; readonly part: number }[] {
  const hours: { at: number; part: number }[] = [];
  let from = fromMs;
  do {
    const at = Math.floor(from / hourMs) * hourMs;
    const to = Math.min(at + hourMs, toMs);
    hours.push({ at, part: toMs === fromMs ? 1 : (to - from) / (toMs - fromMs) });
    from = to;
  } while (from < toMs);
  return hours;
}

function scale(amounts: Amounts, part: number): Amounts {
  const { wallSeconds, cpuSeconds, gibSeconds, gpuSeconds, cost } = amounts;
  return {
    wallSeconds: wallSeconds * part,
    cpuSeconds: cpuSeconds * part,
    gibSeconds: gibSeconds * part,
    gpuSeconds: gpuSeconds * part,
    cost: cost * part,
  };
}

export const noUse: Amounts = {
  wallSeconds: 0,
  cpuSeconds: 0,
  gibSeconds: 0,
  gpuSeconds: 0,
  cost: 0,
};

export function addAmounts(left: Amounts, right: Amounts): Amounts {
  return {
    wallSeconds: left.wallSeconds + right.wallSeconds,
    cpuSeconds: left.cpuSeconds + right.cpuSeconds,
    gibSeconds: left.gibSeconds + right.gibSeconds,
    gpuSeconds: left.gpuSeconds + right.gpuSeconds,
    cost: left.cost + right.cost,
  };
}
