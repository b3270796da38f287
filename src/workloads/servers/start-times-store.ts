import type { HubDatabase } from '../../platform/store/database.ts';

/** How long starts usually take, by what all instances of the hub know of the last ones. */
export interface StartTimes {
  /** Median of the last good starts of a profile, or of none, in milliseconds; undefined where there was none. */
  usualMs(profile: string | undefined): Promise<number | undefined>;
}

const countedStarts = 20;

export function createStartTimes({ kysely }: Pick<HubDatabase, 'kysely'>): StartTimes {
  return {
    async usualMs(profile = '') {
      const rows = await kysely
        .selectFrom('servers')
        .where('start_profile', '=', profile)
        .select('start_ms')
        .orderBy('starting_at', 'desc')
        .limit(countedStarts)
        .execute();
      const times = rows.map(({ start_ms: ms }) => ms ?? 0).sort((one, other) => one - other);
      return times[Math.floor((times.length - 1) / 2)];
    },
  };
}
