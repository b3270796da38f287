import { z } from 'zod';
import type { SpawnerState } from '../../plugin/host/spawner.ts';

const schema = z.object({
  serverId: z.string(),
  pid: z.int().positive(),
  startTime: z.string(),
  url: z.string(),
  logFile: z.string(),
  /** Of this one start. */
  tag: z.string(),
  socketDirectory: z.string().optional(),
  memoryLimitBytes: z.number().optional(),
  processLimit: z.number().optional(),
  /** Whether a cgroup holds the memory limit; otherwise it is polled. */
  isMemoryHeld: z.boolean().optional(),
});

/** What finds a server again after a restart of the hub. */
export type LocalServerState = z.output<typeof schema>;

/** Reads a stored state; undefined when it is not one of this spawner. */
export function readServerState(state: SpawnerState): LocalServerState | undefined {
  return schema.safeParse(state).data;
}

/** Of the tags of a server's starts, the same at every hub on its database and at none of another. */
export const tagFamilyOf = (hubId: string, serverId: string): string =>
  `server-${serverId}#${hubId}`;
