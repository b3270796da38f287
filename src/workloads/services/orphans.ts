import type { Logger } from 'pino';
import { isSameProcess } from '../../platform/process-table/process-table.ts';
import type { Clock } from '../../spawning/processes/clock.ts';
import { endProcessGroup } from '../../spawning/processes/process-group.ts';
import type { ProcessView } from '../../spawning/processes/process-view.ts';
import type { ManagedProcess } from './managed-process-store.ts';

const graceMs = 2_000;

/** What an instance that is gone may have left running of a service. */
export interface Leftover {
  readonly serviceName: string;
  /** The process that it wrote down; undefined when it is known by tags only. */
  readonly process: ManagedProcess | undefined;
  /** Tags that all of it carries: none of a living instance. */
  readonly tags: readonly string[];
}

/**
 * Ends the copy of a service that no hub watches any more: known by pid and start time, or by the tag that
 * everything it started carries. Adopting it would not do, since a new owner gives out a new token.
 */
export async function endLeftover(
  leftover: Leftover,
  {
    log,
    clock,
    view,
  }: { readonly log: Logger; readonly clock?: Clock; readonly view: ProcessView },
): Promise<void> {
  const { serviceName, process, tags } = leftover;
  const identity = process?.identity;
  const groupId = identity !== undefined && isSameProcess(identity) ? identity.pid : undefined;
  const [firstTag = '', ...otherTags] = tags;
  const ended = await Promise.all([
    endProcessGroup({ groupId, tag: firstTag }, { graceMs, clock, view }),
    ...otherTags.map((tag) =>
      endProcessGroup({ groupId: undefined, tag }, { graceMs, clock, view }),
    ),
  ]);
  const found = ended.reduce((sum, each) => sum + each.found, 0);
  if (found === 0) return;
  const survivors = ended.flatMap((each) => each.survivors);
  log.warn(
    { service: serviceName, servicePid: groupId, processes: found, survivors },
    'processes of former hub ended',
  );
}
