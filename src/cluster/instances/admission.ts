import { StartupError } from '../../platform/errors.ts';
import { isProcessGone } from '../../platform/process-table/process-table.ts';
import type { Instance, InstanceDescription } from './instance.ts';

/** The former run of an instance may still be there, as far as can be told from here. */
export class NameInUseError extends StartupError {
  readonly holder: Instance;

  constructor(holder: Instance) {
    super(
      `Another hub named "${holder.name}" runs on this database (${describe(holder)}). ` +
        'Stop it first, or give each a Hub.instance_name of its own.',
    );
    this.holder = holder;
  }
}

/**
 * Refuses an instance beside which the ones that run could not go on as before. Throws NameInUseError where
 * only time can tell whether the former run has ended, and StartupError where that has not or where it does
 * not fit the others.
 */
export function requireRoomFor(instance: InstanceDescription, others: readonly Instance[]): void {
  for (const other of others) {
    if (!other.isLive || hasEnded(other, instance)) continue;
    if (other.name === instance.name) throw new NameInUseError(other);
    if (other.basePath !== instance.basePath) {
      throw new StartupError(
        `The hub "${other.name}" on this database (${describe(other)}) serves the path ${other.basePath}, ` +
          `this one ${instance.basePath}. Give both the same path in Hub.bind_url, or a database each.`,
      );
    }
    const isUnderstood = instance.keyDigests.includes(other.keyDigests[0] ?? '');
    const understands = other.keyDigests.includes(instance.keyDigests[0] ?? '');
    if (!isUnderstood || !understands) {
      throw new StartupError(
        `The hub "${other.name}" on this database (${describe(other)}) has another Hub.cookie_secret: ` +
          'neither could read the cookies of the other. Give both the same keys; a new key is first added ' +
          'behind the old one everywhere, and put in front of it after that.',
      );
    }
  }
}

/** Whether the process of an instance is known to be gone: only on its own machine can that be seen. */
export function hasEnded(
  { machineId, process }: Pick<Instance, 'machineId' | 'process'>,
  here: Pick<Instance, 'machineId'>,
): boolean {
  return machineId === here.machineId && isProcessGone(process);
}

function describe({ process, host, version, startedAt }: Instance): string {
  return `process ${process.pid} on ${host}, version ${version}, since ${startedAt.toISOString()}`;
}
