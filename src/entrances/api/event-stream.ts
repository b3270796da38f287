import { Readable } from 'node:stream';
import type { Context } from 'koa';

const keepAliveMs = 8_000;

/**
 * Answers with server-sent events: each value as one `data:` line of JSON, and a comment now and then
 * so that no proxy on the way takes the silence for the end. Returns its end, and how
 * to bring it about.
 */
export function writeEventStream(
  ctx: Context,
  events: (signal: AbortSignal) => AsyncIterable<unknown>,
): { readonly closed: AbortSignal; end(): void } {
  const closed = new AbortController();
  const close = () => closed.abort();
  // The client may have left while it was decided whether it may have them; `close` will not come again then. Those who
  // wait for the end of the stream begin to do so in this turn.
  if (ctx.res.closed) process.nextTick(close);
  else ctx.res.once('close', close);
  ctx.req.socket.setNoDelay(true);
  ctx.type = 'text/event-stream; charset=utf-8';
  ctx.set('Cache-Control', 'no-cache, no-transform');
  ctx.set('X-Accel-Buffering', 'no');
  let readOn: (() => void) | undefined;
  const stream = new Readable({ read: () => readOn?.() });
  const keepAlive = setInterval(() => stream.push(':\n\n'), keepAliveMs);
  closed.signal.addEventListener('abort', () => {
    clearInterval(keepAlive);
    readOn?.();
  });
  ctx.body = stream;
  void (async () => {
    try {
      for await (const event of events(closed.signal)) {
        if (stream.push(`data: ${JSON.stringify(event)}\n\n`)) continue;
        // The next event is not asked for until the client has taken enough of those before.
        await new Promise<void>((resolve) => {
          readOn = resolve;
          if (closed.signal.aborted) resolve();
        });
      }
      stream.push(null);
    } catch (error) {
      stream.destroy(error instanceof Error ? error : new Error(String(error)));
    } finally {
      clearInterval(keepAlive);
    }
  })();
  return { closed: closed.signal, end: close };
}
