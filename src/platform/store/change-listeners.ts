import type { Logger } from 'pino';
import type { ChangeSubject } from './change-subject.ts';

/** Hears of a change. */
export type ChangeListener = (subject: ChangeSubject) => void;

/** Who wants to know that users, roles, groups, sessions or tokens changed. */
export interface ChangeListeners {
  add(listener: ChangeListener): () => void;
  callAll(subject: ChangeSubject): void;
}

/** A listener that throws does not keep the others from being called. */
export function createChangeListeners({ log }: { readonly log: Logger }): ChangeListeners {
  // A listener added twice is called twice, hence a wrapper for each.
  const listeners = new Set<{ readonly call: ChangeListener }>();
  return {
    add(listener) {
      const entry = { call: listener };
      listeners.add(entry);
      return () => listeners.delete(entry);
    },
    callAll(subject) {
      for (const { call } of listeners) {
        try {
          call(subject);
        } catch (error) {
          log.error({ err: error }, 'database change listener failed');
        }
      }
    },
  };
}
