import type { SpawnerEntry, SpawnerProfile } from './config.ts';

/** Name of the spawner that starts servers of a profile, or of none. */
export function spawnerOf(
  profile: Pick<SpawnerProfile, 'spawner'> | undefined,
  spawners: readonly SpawnerEntry[],
): string {
  return profile?.spawner ?? spawners[0]?.name ?? '';
}
