import type { SpawnerConfig } from '../../platform/config/config.ts';

/** A limit by which the hub itself stops a server. */
export type LimitKind = 'idle_timeout' | 'max_age' | 'budget';

/** How long a server may run; undefined for no limit. */
export interface TimeLimits {
  readonly idleTimeoutMs: number | undefined;
  readonly maxAgeMs: number | undefined;
}

/** The limits of a run, and what its time is counted from where that is not what is stored otherwise. */
export interface LimitClock extends TimeLimits {
  readonly idleFrom: Date | undefined;
  readonly ageFrom: Date | undefined;
  /** Until when its user keeps it running though it is idle. */
  readonly keptUntil?: Date | undefined;
}

/** When a server is stopped if it is not used until then, and by which limit. */
export interface ComingStop {
  readonly at: Date;
  readonly reason: LimitKind;
}

/** What limits how long servers run, by profile and group. */
export interface LimitRules {
  /** Whether there is any limit. */
  readonly isAny: boolean;
  /** Shortest of all limits; infinite where there is none. */
  readonly shortestMs: number;
  /** Names of the groups that have limits of their own. */
  readonly groupNames: readonly string[];
  readonly hasLimitsByProfile: boolean;
  /** The longest that users may keep idle servers running from now on. */
  readonly maxKeptMs: number;
  /** The limits of a server: what a group of its user says, else its profile, else what all have. */
  of(profile: string | undefined, groups: readonly string[]): TimeLimits;
}

type LimitConfig = Pick<
  SpawnerConfig,
  | 'idle_timeout_seconds'
  | 'max_age_seconds'
  | 'limits_by_group'
  | 'profiles'
  | 'keep_running_max_seconds'
>;
type LimitSetting = 'idle_timeout_seconds' | 'max_age_seconds';

export function createLimitRules(config: LimitConfig): LimitRules {
  const byGroup = new Map(Object.entries(config.limits_by_group));
  const byProfile = new Map(config.profiles.map((profile) => [profile.name, profile]));
  const all = [config, ...byGroup.values(), ...config.profiles]
    .flatMap((each) => [each.idle_timeout_seconds, each.max_age_seconds])
    .filter((limit) => limit !== undefined)
    .filter((limit) => limit > 0);

  function limitOf(
    setting: LimitSetting,
    profile: string | undefined,
    groups: readonly string[],
  ): number | undefined {
    const ofGroups = groups
      .map((group) => byGroup.get(group)?.[setting])
      .filter((limit) => limit !== undefined);
    const ofGroup = ofGroups.includes(0) ? 0 : Math.max(...ofGroups);
    const ofProfile = profile === undefined ? undefined : byProfile.get(profile)?.[setting];
    const seconds = ofGroups.length > 0 ? ofGroup : (ofProfile ?? config[setting]);
    return seconds === 0 ? undefined : Math.round(seconds * 1000);
  }

  return {
    isAny: all.length > 0,
    shortestMs: Math.min(...all) * 1000,
    groupNames: [...byGroup.keys()],
    maxKeptMs: config.keep_running_max_seconds * 1000,
    hasLimitsByProfile: config.profiles.some(
      (profile) =>
        profile.idle_timeout_seconds !== undefined || profile.max_age_seconds !== undefined,
    ),
    of: (profile, groups) => ({
      idleTimeoutMs: limitOf('idle_timeout_seconds', profile, groups),
      maxAgeMs: limitOf('max_age_seconds', profile, groups),
    }),
  };
}

/** When a limit stops a server; undefined where none does, or the server does not run. */
export function comingStop(server: {
  readonly state: string;
  readonly startedAt: Date | undefined;
  readonly lastActivityAt: Date | undefined;
  readonly limits?: LimitClock | undefined;
  /** One that is paused is stopped by its age alone. */
  readonly pausedAt?: Date | undefined;
}): ComingStop | undefined {
  const { state, startedAt, lastActivityAt, limits } = server;
  if (state !== 'running' || startedAt === undefined || limits === undefined) return undefined;
  const { idleTimeoutMs, maxAgeMs, idleFrom, ageFrom, keptUntil } = limits;
  const usedMs = Math.max(Number(lastActivityAt ?? startedAt), Number(idleFrom ?? 0));
  const bornMs = Number(ageFrom ?? startedAt);
  const idleMs =
    idleTimeoutMs === undefined || server.pausedAt !== undefined
      ? Number.POSITIVE_INFINITY
      : Math.max(usedMs + idleTimeoutMs, Number(keptUntil ?? 0));
  const oldMs = maxAgeMs === undefined ? Number.POSITIVE_INFINITY : bornMs + maxAgeMs;
  const atMs = Math.min(idleMs, oldMs);
  if (atMs === Number.POSITIVE_INFINITY) return undefined;
  return { at: new Date(atMs), reason: oldMs <= idleMs ? 'max_age' : 'idle_timeout' };
}

/** Until when the user of a server keeps it running though it is idle; undefined where that is not so. */
export function keptUntilOf({
  state,
  limits,
}: Pick<Parameters<typeof comingStop>[0], 'state' | 'limits'>): Date | undefined {
  return state === 'running' ? limits?.keptUntil : undefined;
}

/** Length of the limit that ends or ended a run. */
export function limitMs(limits: TimeLimits | undefined, reason: LimitKind): number | undefined {
  if (reason === 'budget') return undefined;
  return reason === 'idle_timeout' ? limits?.idleTimeoutMs : limits?.maxAgeMs;
}
