import { createKeyedQueue } from './keyed-queue.ts';

/** Lets those of one address in one after another, while fewer than its limit are inside. */
export interface AddressLines {
  /**
   * Runs the work when its turn comes. Rejects with the reason of `signal` when that is aborted before.
   * `limitOf` is asked again whenever someone leaves: it may have changed with what they did.
   */
  run<Result>(
    address: string,
    turn: { readonly limitOf: () => Promise<number>; readonly signal: AbortSignal },
    work: () => Promise<Result>,
  ): Promise<Result>;
}

interface Line {
  inside: number;
  /** In the line or inside. */
  present: number;
  /** Resolves when someone inside leaves. */
  left: PromiseWithResolvers<void>;
}

/** The line of an address lasts only while someone is in it. */
export function createAddressLines(): AddressLines {
  const lines = new Map<string, Line>();
  const serverGuards = createKeyedQueue({ maxQueueLength: Number.POSITIVE_INFINITY });

  return {
    async run(address, { limitOf, signal }, work) {
      const line = lines.get(address) ?? {
        inside: 0,
        present: 0,
        left: Promise.withResolvers<void>(),
      };
      lines.set(address, line);
      line.present += 1;
      try {
        await serverGuards.run(address, async () => {
          await untilThereIsRoom(line, limitOf, signal);
          line.inside += 1;
        });
        try {
          return await work();
        } finally {
          line.inside -= 1;
          line.left.resolve();
          line.left = Promise.withResolvers();
        }
      } finally {
        line.present -= 1;
        if (line.present === 0) lines.delete(address);
      }
    },
  };
}

async function untilThereIsRoom(
  line: Line,
  limitOf: () => Promise<number>,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    signal.throwIfAborted();
    const { left } = line;
    const limit = await limitOf();
    // Attempts that ended meanwhile may have changed the limit.
    if (left !== line.left) continue;
    if (line.inside < limit) return;
    await orAborted(left.promise, signal);
  }
}

function orAborted(promise: Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    void promise.then(() => {
      signal.removeEventListener('abort', abort);
      resolve();
    });
  });
}
