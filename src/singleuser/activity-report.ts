import type { Logger } from 'pino';
import { dateOf } from '../platform/concurrency/monotonic-clock.ts';
import { createPeriodic } from '../platform/concurrency/periodic.ts';

/** Tells the hub when the server was last used, so that idle ones can be stopped. */
export interface ActivityReport extends Disposable {
  /** Notes traffic. */
  touch(): void;
  /** Reports traffic since the last report; without any, the hub is not bothered. Never throws. */
  send(): Promise<void>;
}

const timeoutMs = 30_000;

/** Reports at about `intervalMs`. */
export function createActivityReport(options: {
  /** `<api_url>/users/<name>/activity`. */
  readonly url: string;
  readonly token: string;
  readonly serverName: string;
  readonly intervalMs: number;
  /** When there was traffic last, on the monotonic clock; counted beside what is noted. */
  readonly lastTrafficMs?: () => number | undefined;
  readonly log: Logger;
}): ActivityReport {
  const { url, token, serverName, intervalMs, lastTrafficMs, log } = options;
  let lastActivity: Date | undefined;
  let seenTrafficMs: number | undefined;

  /** What was there when it was first looked at is the start of the app. */
  function lookAtTraffic(): void {
    const trafficMs = lastTrafficMs?.();
    if (trafficMs === undefined || trafficMs === seenTrafficMs) return;
    if (seenTrafficMs !== undefined) lastActivity = dateOf(trafficMs);
    seenTrafficMs = trafficMs;
  }

  async function send(reported: Date): Promise<void> {
    const last_activity = reported.toISOString();
    const response = await fetch(url, {
      method: 'POST',
      headers: { authorization: `token ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ last_activity, servers: { [serverName]: { last_activity } } }),
      signal: AbortSignal.timeout(timeoutMs),
    });
    await response.body?.cancel();
    if (!response.ok) throw new Error(`the hub answered ${response.status}`);
  }

  const reporting = createPeriodic({
    // Spread out, because many servers may have been started together.
    intervalMs: intervalMs * (0.9 + Math.random() * 0.2),
    async work() {
      lookAtTraffic();
      if (lastActivity === undefined) return;
      const reported = lastActivity;
      lastActivity = undefined;
      try {
        await send(reported);
      } catch (error) {
        // Told again with the next report.
        lastActivity ??= reported;
        throw error;
      }
    },
    onError: (error) => log.warn({ err: error }, 'could not report activity to the hub'),
  });
  return {
    touch() {
      lastActivity = new Date();
    },
    send: () => reporting.run(),
    [Symbol.dispose]: () => reporting[Symbol.dispose](),
  };
}
