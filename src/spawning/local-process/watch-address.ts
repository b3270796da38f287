import { HubError } from '../../errors.ts';
import { systemClock } from '../../processes/clock.ts';
import type { SupervisedProcess } from '../../processes/supervised-process.ts';
import { isListening, isPortTaken, type ServerAddress } from './server-address.ts';

/** How long a start waits to see the right program listen; a slower server is let be. */
const patienceMs = 3_000;
const longestLookMs = 200;

/**
 * Watches the first moments of a server, so that a port that another program took between the choice
 * and the start is noticed: false when that happened, and the server is gone then. Throws when the
 * start is given up.
 */
export async function watchAddress(options: {
  readonly process: SupervisedProcess;
  readonly address: ServerAddress;
  readonly ip: string;
  /** Account the server runs as. */
  readonly userId: number | undefined;
  readonly signal: AbortSignal;
}): Promise<boolean> {
  const { process, address, ip, userId, signal } = options;
  const ended = new AbortController();
  void process.exited.then(() => ended.abort());
  const wake = AbortSignal.any([signal, ended.signal]);
  const deadline = systemClock.now() + patienceMs;

  for (
    let lookMs = 10;
    systemClock.now() < deadline;
    lookMs = Math.min(lookMs * 2, longestLookMs)
  ) {
    if (signal.aborted) {
      await process.stop({ graceMs: 0 });
      throw new HubError('conflict', 'The start of the server was given up.');
    }
    if (!process.isRunning()) {
      await process.exited;
      return address.port === undefined || !(await isPortTaken(ip, address.port));
    }
    const listening = await isListening(address, userId);
    if (listening === 'yes') return true;
    if (listening === 'stolen') {
      await process.stop({ graceMs: 0 });
      return false;
    }
    await systemClock.sleep(lookMs, wake);
  }
  return true;
}
