import type { Logger } from 'pino';

/** Tells the hub when the server was last used, so that idle ones can be stopped. */
export interface ActivityReport extends Disposable {
  /** Notes traffic. */
  touch(): void;
  /** Reports traffic since the last report; without any, the hub is not bothered. Never throws. */
  send(): Promise<void>;
}

const timeoutMs = 30_000;

/** Creates the report and sends it regularly. */
export function createActivityReport(options: {
  /** `<api_url>/users/<name>/activity`. */
  readonly url: string;
  readonly token: string;
  readonly serverName: string;
  readonly intervalMs: number;
  readonly log: Logger;
}): ActivityReport {
  const { url, token, serverName, intervalMs, log } = options;
  let lastActivity: Date | undefined;

  async function send(): Promise<void> {
    if (lastActivity === undefined) return;
    const reported = lastActivity;
    lastActivity = undefined;
    const last_activity = reported.toISOString();
    try {
      const response = await fetch(url, {
        method: 'POST',
        headers: { authorization: `token ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ last_activity, servers: { [serverName]: { last_activity } } }),
        signal: AbortSignal.timeout(timeoutMs),
      });
      await response.body?.cancel();
      if (!response.ok) throw new Error(`the hub answered ${response.status}`);
    } catch (error) {
      // Told again with the next report.
      lastActivity ??= reported;
      log.warn({ err: error }, 'could not report activity to the hub');
    }
  }

  // Spread out, because many servers may have been started together.
  const spreadMs = intervalMs * (0.9 + Math.random() * 0.2);
  const timer = setInterval(() => void send(), spreadMs).unref();
  return {
    touch() {
      lastActivity = new Date();
    },
    send,
    [Symbol.dispose]: () => clearInterval(timer),
  };
}
