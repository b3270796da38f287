import type { Logger } from 'pino';
import type { Clock } from '../processes/clock.ts';
import { endProcessGroup } from '../processes/process-group.ts';
import { isSameProcess } from '../processes/process-identity.ts';
import type { ManagedProcess, ManagedProcessStore } from './managed-process-store.ts';

const graceMs = 5_000;

/**
 * Ends the services that a killed hub left running, before they are started again: known by pid and
 * start time, or by the tag that everything they started carries. Adopting them would not do, since
 * a new hub gives out new tokens. Never throws.
 */
export async function endOrphans(options: {
  readonly store: ManagedProcessStore;
  /** Managed services of the present configuration that a former hub may have started. */
  readonly serviceNames: readonly string[];
  readonly tagOf: (serviceName: string) => string;
  readonly log: Logger;
  /** Ends the wait; what has been told to end by then goes on doing so. */
  readonly signal?: AbortSignal | undefined;
  readonly clock?: Clock | undefined;
}): Promise<void> {
  const { store, serviceNames, tagOf, log, signal, clock } = options;
  const known = new Map((await listKnown(store, log)).map((each) => [each.serviceName, each]));
  const names = new Set([...known.keys(), ...serviceNames]);

  async function endOne(name: string): Promise<void> {
    const identity = known.get(name)?.identity;
    const groupId = identity !== undefined && isSameProcess(identity) ? identity.pid : undefined;
    const group = { groupId, tag: tagOf(name) };
    const { found, survivors } = await endProcessGroup(group, { graceMs, clock });
    // The store may be closed by now; the next hub finds what is left.
    if (signal?.aborted) return;
    if (found > 0) {
      log.warn(
        { service: name, servicePid: groupId, processes: found, survivors },
        'ended what a former hub left running',
      );
    }
    if (known.has(name)) await store.forget(name);
  }

  const ended = Promise.allSettled([...names].map(endOne)).then((results) => {
    for (const result of results) {
      if (result.status === 'rejected' && !signal?.aborted)
        log.warn({ err: result.reason }, 'could not clean up after a former hub');
    }
  });
  await Promise.race([ended, aborted(signal)]);
}

async function aborted(signal: AbortSignal | undefined): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  signal?.addEventListener('abort', () => resolve());
  if (signal?.aborted) resolve();
  await promise;
}

async function listKnown(
  store: ManagedProcessStore,
  log: Logger,
): Promise<readonly ManagedProcess[]> {
  try {
    return await store.list();
  } catch (thrown) {
    log.warn({ err: thrown }, 'the processes of a former hub cannot be read');
    return [];
  }
}
