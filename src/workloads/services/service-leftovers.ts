import type { Logger } from 'pino';
import type { Clock } from '../../spawning/processes/clock.ts';
import { tagsOfFamily } from '../../spawning/processes/process-group.ts';
import { listProcessTags } from '../../spawning/processes/process-tag.ts';
import type { ProcessView } from '../../spawning/processes/process-view.ts';
import type { ManagedProcessStore } from './managed-process-store.ts';
import { endLeftover } from './orphans.ts';
import type { ServiceHost } from './service-owner-store.ts';

/** Ends what earlier runs of the hub, and instances that are gone, left of services. */
export interface ServiceLeftovers {
  /** Of one service on this machine; `far` is where the instance ran that had it, if that was elsewhere. */
  end(name: string, formerTags: readonly string[], far?: ServiceHost): Promise<void>;
  /** What is left on another machine, an instance of that has to end. */
  endAt(host: ServiceHost, name: string, tag: string): Promise<void>;
  /** What an earlier run left of services that are configured nowhere any more. */
  endForgotten(): Promise<void>;
  /** What an earlier run in this folder left, also of services that other instances have taken over since. */
  endOwn(): Promise<void>;
}

/** How often an instance is asked to end what is left on its machine. */
const maxAttempts = 3;

export function createServiceLeftovers(deps: {
  readonly processes: ManagedProcessStore;
  /** Has an instance on the machine of another one, which is gone, end what that left of a service. */
  readonly endLeftRemote: (host: ServiceHost, name: string, tag: string) => Promise<void>;
  /** Names of the managed services of the configuration in force. */
  readonly names: () => readonly string[];
  /** Tag of the processes that this run of the hub starts for a service. */
  readonly tagOf: (serviceName: string) => string;
  /** What the tags of all runs in the same folder begin with. */
  readonly tagPrefixOf: (serviceName: string) => string;
  /** Whether an earlier run in the same folder may have begun it. */
  readonly mayHaveRun: (serviceName: string) => boolean;
  readonly signal: AbortSignal;
  readonly log: Logger;
  readonly clock?: Clock | undefined;
  readonly view: ProcessView;
}): ServiceLeftovers {
  const { processes, view, log, clock } = deps;

  async function end(
    name: string,
    formerTags: readonly string[],
    far?: ServiceHost,
  ): Promise<void> {
    const known = (await processes.list()).find((each) => each.serviceName === name);
    const left = far === undefined ? known : undefined;
    if (left === undefined && formerTags.length === 0 && !deps.mayHaveRun(name)) return;
    const family = await tagsOfFamily(deps.tagPrefixOf(name), { view });
    const own = family.filter((tag) => tag !== deps.tagOf(name));
    const tags = [...new Set([deps.tagPrefixOf(name), ...formerTags, ...own])];
    await endLeftover(
      { serviceName: name, process: left, tags },
      { log, view, ...(clock && { clock }) },
    );
    if (deps.signal.aborted) return;
    if (left !== undefined) await processes.forget(name);
  }

  return {
    end,

    async endAt(host, name, tag) {
      for (let attempt = 1; ; attempt += 1) {
        try {
          await deps.endLeftRemote(host, name, tag);
          return;
        } catch (error) {
          // Rather late than twice, but not never: that machine may be gone with all that is on it.
          if (attempt < maxAttempts) continue;
          log.warn(
            { service: name, from: host.name, err: error },
            'leftover processes of service could not be ended',
          );
          return;
        }
      }
    },

    async endForgotten() {
      const configured = new Set(deps.names());
      const left = (await processes.list()).filter(
        ({ serviceName }) => !configured.has(serviceName),
      );
      await Promise.all(left.map(({ serviceName }) => end(serviceName, [])));
    },

    async endOwn() {
      const mayBeLeft = deps.names().filter(deps.mayHaveRun);
      if (mayBeLeft.length === 0) return;
      const tags = [...(await listProcessTags()).keys()];
      const isLeft = (name: string) =>
        tags.some((tag) => tag.startsWith(deps.tagPrefixOf(name)) && tag !== deps.tagOf(name));
      await Promise.all(mayBeLeft.filter(isLeft).map((name) => end(name, [])));
    },
  };
}
