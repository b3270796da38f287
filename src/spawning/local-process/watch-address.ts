import { lstat } from 'node:fs/promises';
import { HubError } from '../../platform/errors.ts';
import type { Phrase } from '../../platform/texts/text.ts';
import { text } from '../../platform/texts/text.ts';
import { systemClock } from '../processes/clock.ts';
import { holdsAnySocket, listenersFor } from '../processes/port-listener.ts';
import type { ProcessView } from '../processes/process-view.ts';
import type { SupervisedProcess } from '../processes/supervised-process.ts';
import { isPortTaken, type ServerAddress } from './server-address.ts';

const maxPollMs = 200;
/** A start is noticed as much later as this is more than 1, in parts of its time. */
const pollGrowth = 1.25;
/** How often to scan all ports and processes of the machine, which costs more than one process. */
const wideScanMs = 500;

export interface WatchedStart {
  readonly process: SupervisedProcess;
  readonly address: ServerAddress;
  readonly ip: string;
  /** Says which other program has the address of the server. */
  readonly findForeignProcess: () => Promise<Phrase | undefined>;
  readonly signal: AbortSignal;
  readonly view: ProcessView;
  /** How long to wait to see the server listen; a slower one is let be. */
  readonly patienceMs: number;
}

/**
 * Watches the first moments of a server, so that a port that another program took between the choice
 * and the start is noticed: false when that happened, and the server is gone then. Throws when the
 * start is given up.
 */
export async function watchAddress(start: WatchedStart): Promise<boolean> {
  const { process, address, ip, signal, patienceMs } = start;
  using ended = signalOfEnd(process);
  const wake = AbortSignal.any([signal, ended.signal]);
  const deadline = systemClock.monotonicMs() + patienceMs;

  let thefts = 0;
  let nextWideScan = systemClock.monotonicMs() + wideScanMs;

  for (
    let pollMs = 5;
    systemClock.monotonicMs() < deadline;
    pollMs = Math.min(pollMs * pollGrowth, maxPollMs)
  ) {
    if (signal.aborted) {
      await process.stop({ graceMs: 0 });
      throw new HubError('conflict', text`The start of the server was given up.`);
    }
    if (!process.isRunning()) {
      await process.exited;
      return address.port === undefined || !(await isPortTaken(ip, address.port));
    }
    const isWide = systemClock.monotonicMs() >= nextWideScan;
    if (isWide) nextWideScan = systemClock.monotonicMs() + wideScanMs;
    const listening = await isListening(start, isWide);
    if (listening === 'yes') return true;
    if (listening === 'free') thefts = 0;
    if (listening === 'stolen') {
      thefts += 1;
      nextWideScan = 0;
    }
    // The second look finds a program that began in the middle of the first.
    if (thefts > 1) {
      await process.stop({ graceMs: 0 });
      return false;
    }
    await systemClock.sleep(pollMs, wake);
  }
  return true;
}

/** Aborted when the process ends, until it is disposed of: nothing of a start stays with a server that runs for days. */
function signalOfEnd(process: SupervisedProcess): Disposable & { readonly signal: AbortSignal } {
  let ended: AbortController | undefined = new AbortController();
  void process.exited.then(() => ended?.abort());
  return {
    signal: ended.signal,
    [Symbol.dispose]() {
      ended = undefined;
    },
  };
}

/** `stolen`: another program listens in its place; `free`: no program does; `no`: not known, since it was not asked. */
async function isListening(
  { process, address, findForeignProcess, view }: WatchedStart,
  isWide: boolean,
): Promise<'yes' | 'no' | 'free' | 'stolen'> {
  const { port, socket } = address;
  if (socket !== undefined) {
    return (await lstat(socket.path).catch(() => undefined)) === undefined ? 'no' : 'yes';
  }
  const { pid } = process.identity;
  if (port === undefined || !(isWide || holdsAnySocket(pid))) return 'no';
  const listeners = await listenersFor(address.url, view.listenersOn);
  // Where the system does not tell, the readiness probe will.
  if (listeners === undefined) return 'yes';
  if (listeners.length === 0) return 'free';
  return (await findForeignProcess()) === undefined ? 'yes' : 'stolen';
}
