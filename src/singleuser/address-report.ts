import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';

const timeoutMs = 10_000;
const maxPauseMs = 10_000;

/**
 * Tells the hub the port that the server has chosen, again and again until the hub takes it: it may be
 * restarting, or not know yet that the job runs. Ends with the signal; never throws.
 */
export async function reportAddress(options: {
  /** HUB_ADDRESS_URL. */
  readonly url: string;
  readonly token: string;
  readonly port: number;
  readonly signal: AbortSignal;
  readonly log: Logger;
}): Promise<void> {
  const { url, token, port, signal, log } = options;
  for (let pauseMs = 100; !signal.aborted; pauseMs = Math.min(pauseMs * 2, maxPauseMs)) {
    try {
      const response = await fetch(url, {
        method: 'POST',
        headers: { authorization: `token ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ port }),
        signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
      });
      const text = await response.text();
      if (response.ok) return;
      throw new Error(`the hub answered ${response.status}: ${text.slice(0, 500)}`);
    } catch (error) {
      if (signal.aborted) return;
      log.warn({ err: error, port }, 'could not report the port of the server, trying again');
    }
    await sleep(pauseMs, undefined, { signal, ref: false }).catch(() => undefined);
  }
}
