import { setTimeout as sleep } from 'node:timers/promises';
import type { ChannelCaller } from '../../cluster/instances/channel-caller.ts';
import type { InstanceDirectory } from '../../cluster/instances/instance-directory.ts';
import { HubError } from '../../platform/errors.ts';
import { readPhrase, type SavedPhrase, savePhrase, text } from '../../platform/texts/text.ts';
import type { ProgressLog, ProgressPart } from './progress-log.ts';
import type { Server, ServerProgress } from './server.ts';
import type { ServerLifecycle } from './server-lifecycle.ts';
import { serverReady } from './start-texts.ts';

/** The steps of starts that other instances have under way. */
export interface RemoteProgress {
  /** What has been told of a start so far; nothing where its instance does not answer. */
  soFar(server: Server): Promise<readonly ServerProgress[]>;
  /** All of it, until the server is ready or has failed, or the signal. */
  follow(server: Server, signal: AbortSignal): AsyncIterable<ServerProgress>;
}

/** The operation by which an instance tells of a start that it has under way. */
export const progressOperation = 'server-progress';

const intervalMs = 1_000;
const answerMs = 3_000;

interface Question {
  readonly serverId: string;
  readonly from: number;
}

interface SavedPart extends Pick<ProgressPart, 'next'> {
  readonly events: readonly (Omit<ServerProgress, 'message'> & { readonly message: SavedPhrase })[];
}

/** Answers another instance; the question is signed by that. */
export function answerProgress(
  progressOf: (serverId: string) => ProgressLog | undefined,
  question: unknown,
): SavedPart {
  const { serverId, from } = question as Question;
  const { events, next } = progressOf(serverId)?.since(from) ?? { events: [], next: from };
  const saved = events.map((event) => ({ ...event, message: savePhrase(event.message) }));
  return { events: saved, next };
}

export function createRemoteProgress(deps: {
  readonly directory: Pick<InstanceDirectory, 'addressOf'>;
  readonly caller: Pick<ChannelCaller, 'call'>;
  readonly lifecycle: Pick<ServerLifecycle, 'untilReady'>;
  /** Where browsers reach a server. */
  readonly urlOf: (server: Server) => string;
}): RemoteProgress {
  const { directory, caller, lifecycle, urlOf } = deps;

  async function ask({ id: serverId, instance }: Server, from: number): Promise<ProgressPart> {
    const address = instance && directory.addressOf(instance.id);
    if (address === undefined) return { events: [], next: from };
    const question: Question = { serverId, from };
    try {
      const options = { timeoutMs: answerMs };
      const reported = await caller.call(address, progressOperation, question, options);
      const { events, next } = reported as SavedPart;
      return {
        events: events.map((event) => ({ ...event, message: readPhrase(event.message) })),
        next,
      };
    } catch (error) {
      if (error instanceof HubError) return { events: [], next: from };
      throw error;
    }
  }

  /** How a start ends, the database tells. */
  async function endOf(server: Server): Promise<ServerProgress> {
    try {
      await lifecycle.untilReady(server);
      return { progress: 100, ready: true, message: serverReady, url: urlOf(server) };
    } catch (error) {
      const message = error instanceof HubError ? error.shown.message : text`The start failed.`;
      return { progress: 100, failed: true, message };
    }
  }

  return {
    soFar: async (server) => (await ask(server, 0)).events,

    async *follow(server, signal) {
      yield { progress: 0, message: text`The server is starting.` };
      const over = new AbortController();
      const waiting = AbortSignal.any([signal, over.signal]);
      let end: ServerProgress | undefined;
      void endOf(server).then((event) => {
        end = event;
        over.abort();
      });
      for (let from = 0; !signal.aborted; ) {
        const isLast = end !== undefined;
        const { events, next } = await ask(server, from);
        from = next;
        yield* events;
        if (events.some(({ ready, failed }) => ready === true || failed === true)) return;
        if (isLast && end !== undefined) {
          yield end;
          return;
        }
        await sleep(intervalMs, undefined, { signal: waiting }).catch(() => undefined);
      }
    },
  };
}
