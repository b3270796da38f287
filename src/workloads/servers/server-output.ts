import type { ChannelCaller } from '../../cluster/instances/channel-caller.ts';
import type { InstanceDirectory } from '../../cluster/instances/instance-directory.ts';
import {
  createOutputFeed,
  type OutputPart,
  type OutputPosition,
  type OutputSource,
} from '../../spawning/processes/output-feed.ts';
import type { ServerLifecycle } from './server-lifecycle.ts';
import type { ServerStore } from './server-store.ts';

/** What servers write, whichever instance runs them. */
export interface ServerOutput {
  /** Of a server that does not run there is nothing. */
  of(serverId: string): OutputSource;
}

/** The operation by which an instance tells what a server of its own has written. */
export const serverOutputOperation = 'server-output';

interface Question {
  readonly serverId: string;
  readonly after?: OutputPosition | undefined;
  readonly max?: number | undefined;
  readonly withinSeconds?: number | undefined;
}

const nothing = createOutputFeed();

/** Answers another instance; the question is signed by that. */
export function answerServerOutput(
  lifecycle: Pick<ServerLifecycle, 'unitOf'>,
  question: unknown,
): Promise<OutputPart> {
  const { serverId, after, max, withinSeconds } = question as Question;
  return (lifecycle.unitOf(serverId)?.output ?? nothing).read(after, max, withinSeconds);
}

export function createServerOutput(deps: {
  readonly lifecycle: Pick<ServerLifecycle, 'unitOf'>;
  readonly serverStore: Pick<ServerStore, 'findById'>;
  readonly instance: { readonly id: string };
  readonly directory: Pick<InstanceDirectory, 'addressOf'>;
  readonly caller: Pick<ChannelCaller, 'call'>;
}): ServerOutput {
  const { lifecycle, serverStore: store, instance: here, directory, caller } = deps;
  return {
    of: (serverId) => ({
      // Looked up at each read: a follower goes with its server.
      async read(after, max, withinSeconds) {
        const unit = lifecycle.unitOf(serverId);
        if (unit !== undefined) return unit.output.read(after, max, withinSeconds);
        const { instance } = (await store.findById(serverId)) ?? {};
        if (instance === undefined || instance.id === here.id) return nothing.read(after, max);
        const address = directory.addressOf(instance.id) ?? { ...instance, url: undefined };
        const question: Question = { serverId, after, max, withinSeconds };
        return (await caller.call(address, serverOutputOperation, question)) as OutputPart;
      },
      onMore: (listener) =>
        lifecycle.unitOf(serverId)?.output.onMore(listener) ?? (() => undefined),
    }),
  };
}
