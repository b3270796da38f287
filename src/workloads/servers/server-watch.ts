import { setTimeout as sleep } from 'node:timers/promises';
import { HubError } from '../../platform/errors.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import { text } from '../../platform/texts/text.ts';
import { type Server, unreachableSince } from './server.ts';
import type { ServerStore } from './server-store.ts';

/** Follows servers that other instances run, by what the database says of them. */
export interface ServerWatch {
  /** Resolves when a server is ready, rejects when it failed, as a start of this instance would. */
  untilReady(serverId: string): Promise<void>;
  /** Resolves when a server is stopped, gone or unreachable, with what is known of it. */
  untilDown(serverId: string): Promise<Server | undefined>;
}

const pollMs = 500;

export function createServerWatch(deps: {
  readonly store: Pick<ServerStore, 'findById'>;
  readonly database: Pick<HubDatabase, 'onChange'>;
  /** Aborted when the hub stops; then waiting ends with `unavailable`. */
  readonly signal: AbortSignal;
}): ServerWatch {
  const { store, database, signal } = deps;

  async function until(
    serverId: string,
    isThere: (server: Server | undefined) => boolean,
  ): Promise<Server | undefined> {
    let wake = (): void => undefined;
    const stopListening = database.onChange(
      (subject) => {
        if (subject.serverId === serverId) wake();
      },
      ['server_changed'],
    );
    try {
      for (;;) {
        if (signal.aborted) throw new HubError('unavailable', text`The hub is stopping.`);
        const woken = new Promise<void>((resolve) => {
          wake = resolve;
        });
        const server = await store.findById(serverId);
        if (isThere(server)) return server;
        const over = new AbortController();
        const waiting = AbortSignal.any([over.signal, signal]);
        await Promise.race([
          woken,
          sleep(pollMs, undefined, { signal: waiting }).catch(() => undefined),
        ]);
        over.abort();
      }
    } finally {
      stopListening();
    }
  }

  return {
    async untilReady(serverId) {
      let former: Date | undefined;
      const server = await until(serverId, (now) => {
        if (now?.state === 'starting') former = now.lastFailure?.at;
        return (
          now === undefined ||
          now.state === 'running' ||
          now.state === 'stopped' ||
          unreachableSince(now) !== undefined
        );
      });
      if (server?.state === 'running' && unreachableSince(server) === undefined) return;
      const failure = server?.failure;
      const isNew = failure !== undefined && failure.at.getTime() !== former?.getTime();
      if (isNew) throw new HubError('spawn_failed', failure.message);
      throw new HubError('conflict', text`The start was cancelled.`);
    },

    untilDown: (serverId) =>
      until(
        serverId,
        (now) =>
          now === undefined || now.state === 'stopped' || unreachableSince(now) !== undefined,
      ),
  };
}
