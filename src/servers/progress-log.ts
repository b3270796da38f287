import type { ServerProgress } from './server.ts';

const keptEvents = 100;

/** The steps of one start: kept from the beginning, so that late readers get them all. */
export interface ProgressLog {
  readonly events: readonly ServerProgress[];
  add(event: ServerProgress): void;
  /** No further event will come. */
  end(): void;
  /** All events so far and all that follow, until the end or the signal. */
  follow(signal: AbortSignal): AsyncIterable<ServerProgress>;
}

export function createProgressLog(): ProgressLog {
  const events: ServerProgress[] = [];
  let isEnded = false;
  let changed = Promise.withResolvers<void>();

  function announce(): void {
    changed.resolve();
    changed = Promise.withResolvers<void>();
  }

  return {
    events,
    add(event) {
      if (isEnded) return;
      if (events.length < keptEvents || event.ready === true || event.failed === true)
        events.push(event);
      announce();
    },
    end() {
      isEnded = true;
      announce();
    },
    async *follow(signal) {
      const aborted = Promise.withResolvers<void>();
      const abort = () => aborted.resolve();
      signal.addEventListener('abort', abort, { once: true });
      try {
        for (let position = 0; !signal.aborted; ) {
          const event = events[position];
          if (event !== undefined) {
            position += 1;
            yield event;
          } else if (isEnded) return;
          else await Promise.race([changed.promise, aborted.promise]);
        }
      } finally {
        signal.removeEventListener('abort', abort);
      }
    },
  };
}
