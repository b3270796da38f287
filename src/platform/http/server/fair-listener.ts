import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createEventLoopYield } from '../../concurrency/event-loop-yield.ts';
import { monotonicMs } from '../../concurrency/monotonic-clock.ts';

/**
 * Answers requests of the hub itself in turns, so that hundreds which arrive together delay neither
 * requests behind the gateway nor health checks.
 */
export function createFairListener(
  answer: (req: IncomingMessage, res: ServerResponse) => Promise<void>,
  /** Paths that are answered at once; they must cost next to nothing. */
  urgentPaths: readonly string[],
  /** Whose new connections come first, those of forwarded requests among them. */
  servers: readonly Server[] = [],
): RequestListener {
  const yieldToEventLoop = createEventLoopYield();
  const untilAllAreIn = createArrivalWait(servers);
  async function answerInTurn(req: IncomingMessage, res: ServerResponse): Promise<void> {
    await untilAllAreIn();
    await yieldToEventLoop();
    await answer(req, res);
  }
  return (req, res) => {
    const isUrgent = urgentPaths.includes(req.url ?? '');
    void (isUrgent ? answer(req, res) : answerInTurn(req, res));
  };
}

/** How long a request waits at most while connections come in. */
const maxWaitMs = 200;

/**
 * Waits while connections come in. Node takes one connection in each turn of the event loop: if answers
 * filled the turns, the last of a crowd would be let in when the first ones have their answers, and a
 * request that is only forwarded would wait with them.
 */
function createArrivalWait(servers: readonly Server[]): () => Promise<void> {
  let arrivals = 0;
  let isWatching = false;

  async function watch(): Promise<void> {
    isWatching = true;
    for (let seen = -1; seen !== arrivals; ) {
      seen = arrivals;
      // From one look at the sockets to after the next.
      await nextTurn();
      await nextTurn();
    }
    isWatching = false;
  }

  for (const server of servers) {
    server.on('connection', () => {
      arrivals += 1;
      if (!isWatching) void watch();
    });
  }
  return async () => {
    if (!isWatching) return;
    const sinceMs = monotonicMs();
    while (isWatching && monotonicMs() - sinceMs < maxWaitMs) await nextTurn();
  };
}
