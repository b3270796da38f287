import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { createEventLoopYield } from '../../concurrency/event-loop-yield.ts';

/**
 * Answers requests of the hub itself in turns, so that hundreds which arrive together delay neither
 * requests behind the gateway nor health checks.
 */
export function createFairListener(
  answer: (req: IncomingMessage, res: ServerResponse) => Promise<void>,
  /** Paths that are answered at once; they must cost next to nothing. */
  urgentPaths: readonly string[],
): RequestListener {
  const yieldToEventLoop = createEventLoopYield();
  async function answerInTurn(req: IncomingMessage, res: ServerResponse): Promise<void> {
    await yieldToEventLoop();
    await answer(req, res);
  }
  return (req, res) => {
    const isUrgent = urgentPaths.includes(req.url ?? '');
    void (isUrgent ? answer(req, res) : answerInTurn(req, res));
  };
}
