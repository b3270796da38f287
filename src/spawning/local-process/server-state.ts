import { z } from 'zod';
import type { SpawnerState } from '../../plugin-host/spawner.ts';

const schema = z.object({
  serverId: z.string(),
  pid: z.int().positive(),
  startTime: z.string(),
  url: z.string(),
  logFile: z.string(),
  /** Missing of servers that an earlier version started. */
  tag: z.string().optional(),
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

/**
 * What the processes of a server carry, the same at every hub of the machine: one hub may have to end what
 * another one was about to start when it was killed.
 */
export const newTag = (serverId: string): string => `server-${serverId}`;

export function tagOf({ tag, logFile }: Pick<LocalServerState, 'tag' | 'logFile'>): string {
  return tag ?? logFile;
}
