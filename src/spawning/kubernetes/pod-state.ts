import { z } from 'zod';
import type { SpawnerState } from '../../plugin/host/spawn-request.ts';

const schema = z.object({
  pod: z.string().min(1),
  namespace: z.string().min(1),
  uid: z.string().min(1),
  serverId: z.string(),
  image: z.string(),
  port: z.int(),
  /** Missing while the pod has no address. */
  url: z.string().optional(),
});

/** What finds a pod again after a restart of the hub. */
export type PodState = z.output<typeof schema>;

/** Reads a stored state; undefined when it is not one of this spawner. */
export function readPodState(state: SpawnerState): PodState | undefined {
  return schema.safeParse(state).data;
}

/** The URL at which a pod answers. */
export function urlOf(ip: string, port: number): string {
  return `http://${ip.includes(':') ? `[${ip}]` : ip}:${port}`;
}
