import type { Logger } from 'pino';

/** Who wants to know that users, roles, groups, sessions or tokens changed. */
export interface ChangeListeners {
  add(listener: () => void): () => void;
  callAll(): void;
}

/** Creates an empty set of listeners; one that throws does not keep the others from being called. */
export function createChangeListeners({ log }: { readonly log: Logger }): ChangeListeners {
  // A listener added twice is called twice, hence a wrapper for each.
  const listeners = new Set<{ readonly call: () => void }>();
  return {
    add(listener) {
      const entry = { call: listener };
      listeners.add(entry);
      return () => listeners.delete(entry);
    },
    callAll() {
      for (const { call } of listeners) {
        try {
          call();
        } catch (error) {
          log.error({ err: error }, 'a listener for changes of the database failed');
        }
      }
    },
  };
}
