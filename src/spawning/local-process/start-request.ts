import { join } from 'node:path';
import { HubError } from '../../platform/errors.ts';
import { explainMover, findMover, findOperator } from '../../platform/files/movable-path.ts';
import { hubCommand } from '../../platform/files/program-folder.ts';
import { type Text, text } from '../../platform/texts/text.ts';
import type { ResourceLimits, SpawnRequest } from '../../plugin/host/spawn-request.ts';
import type { CgroupLimits } from '../processes/cgroup.ts';
import { fillGuardedCommand } from '../processes/singleuser-program.ts';
import { findSystemUser, type SystemUser } from '../processes/system-user.ts';
import { makeOwnedDirectory } from './owned-directory.ts';
import type { ServerAddress } from './server-address.ts';

/** Refuses what no process of this machine can be given. */
export function requireLocal({ limits, volumes }: Pick<SpawnRequest, 'limits' | 'volumes'>): void {
  const refuse = (what: Text) =>
    new HubError('bad_request', text`The server cannot be started: local-process ${what}.`, {
      hint: text`The operator takes it out of the Spawner section or the profile, or uses another spawner.`,
    });
  if (volumes.length > 0) throw refuse(text`mounts no volumes (volumes)`);
  if ((limits.gpus ?? 0) > 0) throw refuse(text`gives out no GPUs (gpu_limit)`);
}

export function cgroupLimitsOf({ memoryBytes, cpuCores, processes }: ResourceLimits): CgroupLimits {
  return {
    ...(memoryBytes !== undefined && { memoryBytes }),
    ...(cpuCores !== undefined && { cpuCores }),
    ...(processes !== undefined && { processes }),
  };
}

export async function requireUser(name: string | undefined): Promise<SystemUser | undefined> {
  if (name === undefined) return undefined;
  const user = await findSystemUser(name);
  if (user === undefined) {
    throw new HubError(
      'upstream_failed',
      text`The server cannot be started: there is no system user "${name}".`,
      {
        hint: text`The operator makes it, or gives the user another account: ${hubCommand('user account')}.`,
      },
    );
  }
  // The hub has asked before; whatever it thinks, no user gets this machine.
  if (user.userId === 0) throw new HubError('upstream_failed', text`No server runs as root.`);
  return user;
}

/**
 * Makes the folder of a server. Refuses one for output in which the account could put a link in the place of a file.
 * The account that could move the hub's own folder is trusted: it could do anything to the hub.
 */
export async function prepareFolders(
  path: string,
  user: SystemUser | undefined,
  own: { readonly runtimeDirectory: string; readonly logDirectory: string },
): Promise<void> {
  const trusted = await findOperator(own.runtimeDirectory);
  try {
    await makeOwnedDirectory(path, user, trusted);
  } catch (thrown) {
    throw new HubError(
      'upstream_failed',
      text`The directory ${path} of the server cannot be made.`,
      {
        cause: thrown,
      },
    );
  }
  const file = join(own.logDirectory, 'server.log');
  const mover = user && (await findMover(file, trusted));
  if (mover === undefined) return;
  throw new HubError('upstream_failed', text`The output of the server has no safe place.`, {
    hint: text`LocalProcessSpawner.log_dir: ${explainMover(file, mover)}.`,
  });
}

/** A home of its own, because programs fail in odd ways without one. */
export function homeVariables(
  request: SpawnRequest,
  user: SystemUser | undefined,
): Record<string, string> {
  if (user === undefined) return { HOME: request.workingDirectory };
  return { HOME: user.home, SHELL: user.shell };
}

/** Fills in where the server is to listen. */
export function fillCommand(command: readonly string[], { placeholders }: ServerAddress): string[] {
  return fillGuardedCommand(command, (text) =>
    text.replaceAll(
      /\{(ip|port|socket)\}/g,
      (placeholder, name: string) => placeholders[name] ?? placeholder,
    ),
  );
}

/** Whether a command names the socket it is to listen on; behind a guard it is the guard's to give out. */
export function asksForSocket(command: readonly string[]): boolean {
  return fillGuardedCommand(command, (text) => text.replaceAll('{socket}', '\0'))
    .join('')
    .includes('\0');
}
