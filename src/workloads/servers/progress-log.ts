import type { ServerProgress } from './server.ts';

const maxEvents = 100;

/** The steps of one start: the last hundred, so that late readers get them all but for those of a very long one. */
export interface ProgressLog {
  readonly events: readonly ServerProgress[];
  add(event: ServerProgress): void;
  /** The events from a position on, which begins with 0, as far as they are kept. */
  since(position: number): ProgressPart;
  /** No further event will come. */
  end(): void;
  /** All events so far and all that follow, until the end or the signal. */
  follow(signal: AbortSignal): AsyncIterable<ServerProgress>;
}

export interface ProgressPart {
  readonly events: readonly ServerProgress[];
  /** Position after them. */
  readonly next: number;
}

export function createProgressLog(): ProgressLog {
  let events: readonly ServerProgress[] = [];
  /** How many there were before the first one kept. */
  let dropped = 0;
  let isEnded = false;
  let changed = Promise.withResolvers<void>();

  function announce(): void {
    changed.resolve();
    changed = Promise.withResolvers<void>();
  }

  return {
    get events() {
      return events;
    },
    add(event) {
      if (isEnded) return;
      // A job in a queue is told of for hours: what is new counts.
      const excess = Math.max(0, events.length + 1 - maxEvents);
      events = [...events.slice(excess), event];
      dropped += excess;
      announce();
    },
    since: (position) => ({
      events: events.slice(Math.max(0, position - dropped)),
      next: dropped + events.length,
    }),
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
          position = Math.max(position, dropped);
          const event = events[position - dropped];
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
