import { constants } from 'node:os';
import type { ContainerInspectInfo } from 'dockerode';
import { z } from 'zod';
import { text } from '../../platform/texts/text.ts';
import type { SpawnerState } from '../../plugin/host/spawn-request.ts';
import type { ServerExit } from '../../plugin/host/spawner.ts';
import { outOfMemory } from '../spawner-texts.ts';

const schema = z.object({
  container: z.string().regex(/^[0-9a-f]{12,64}$/),
  serverId: z.string(),
  url: z.string(),
});

/** What finds a container again after a restart of the hub. */
export type ContainerState = z.output<typeof schema>;

/** Reads a stored state; undefined when it is not one of this spawner. */
export function readContainerState(state: SpawnerState): ContainerState | undefined {
  return schema.safeParse(state).data;
}

/** How a container is: `running`, or how it ended. */
export type ContainerCondition =
  | { readonly running: true }
  | { readonly running: false; readonly exit: ServerExit };

/** `stopping` is of Podman, which tells no exit code until then. */
const running = new Set(['running', 'paused', 'restarting', 'stopping']);

/** What became of a container that is not there. */
export const removedExit: ServerExit = {
  code: null,
  signal: null,
  reason: text`its container was removed`,
};

/** Reads the condition of a container as the engine describes it. */
export function conditionOf({
  State: state,
  HostConfig,
}: ContainerInspectInfo): ContainerCondition {
  if (running.has(state.Status)) return { running: true };
  return { running: false, exit: exitOf(state, HostConfig.Memory ?? 0) };
}

function exitOf(state: ContainerInspectInfo['State'], memoryBytes: number): ServerExit {
  const { ExitCode: code, OOMKilled, Error: error, Status } = state;
  if (Status === 'created') {
    return {
      code: null,
      signal: null,
      reason: error === '' ? text`it was never started` : error,
    };
  }
  const signal = signalOf(code);
  // A program that lost a part to the memory limit, and went on, ends with 0.
  if (OOMKilled && code !== 0) {
    return { code, signal, reason: outOfMemory(memoryBytes > 0 ? memoryBytes : undefined) };
  }
  return error === '' ? { code, signal } : { code, signal, reason: error };
}

/** Engines tell a signal as 128 and its number, as shells do. */
function signalOf(code: number): string | null {
  const found = Object.entries(constants.signals).find(([, number]) => number === code - 128);
  return found?.[0] ?? null;
}
