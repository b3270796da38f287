import { HubError } from '../../platform/errors.ts';
import { text } from '../../platform/texts/text.ts';
import type { AcceptAddress, ReportedAddress } from '../../plugin/host/spawn-request.ts';

/** Addresses that servers tell by themselves while they start. */
export interface AddressReports {
  /** Waits for the first address of a server that is accepted. Rejects when the signal aborts. */
  await(serverId: string, accept: AcceptAddress, signal: AbortSignal): Promise<string>;
  /**
   * Hands over what a server told. Throws `conflict` when no start waits for it or another report is being
   * checked, and `forbidden` with the spawner's reason when it is refused.
   */
  tell(serverId: string, reported: ReportedAddress): Promise<void>;
}

interface Waiting {
  readonly accept: AcceptAddress;
  readonly onAccepted: (url: string) => void;
  /** A check may ask the engine: one at a time, however many reports come. */
  isChecking: boolean;
}

export function createAddressReports(): AddressReports {
  const waiting = new Map<string, Waiting>();

  return {
    async await(serverId, accept, signal) {
      signal.throwIfAborted();
      const { promise, resolve, reject } = Promise.withResolvers<string>();
      const entry: Waiting = { accept, onAccepted: resolve, isChecking: false };
      const onAbort = () => reject(signal.reason);
      waiting.set(serverId, entry);
      signal.addEventListener('abort', onAbort, { once: true });
      try {
        return await promise;
      } finally {
        signal.removeEventListener('abort', onAbort);
        if (waiting.get(serverId) === entry) waiting.delete(serverId);
      }
    },

    async tell(serverId, reported) {
      const entry = waiting.get(serverId);
      if (entry === undefined) {
        throw new HubError('conflict', text`The hub does not wait for an address of this server.`);
      }
      if (entry.isChecking) {
        throw new HubError('conflict', text`Another address of this server is being checked.`, {
          hint: text`Try again in a moment.`,
        });
      }
      entry.isChecking = true;
      try {
        entry.onAccepted(await entry.accept(reported));
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error);
        throw new HubError('forbidden', message, { cause: error });
      } finally {
        entry.isChecking = false;
      }
    },
  };
}
