import { closeSync, constants, fstatSync, openSync } from 'node:fs';
import type { Writable } from 'node:stream';
import type { Logger } from 'pino';
import { createLog, type LogFormat } from './create-log.ts';
import {
  createLogWriter,
  fileOutput,
  type LogOutput,
  streamOutput,
  writeNow,
} from './log-writer.ts';

/** The log of a program, on its standard error. */
export interface OpenedLog {
  readonly log: Logger;
  /** Waits until everything is written; false when that takes longer than the time. */
  flush(deadlineMs: number): Promise<boolean>;
  /** Writes what can be written at once; for a program that ends in this very moment. */
  flushNow(): void;
  /** Lines lost so far because they were not read. */
  readonly droppedLogLines: () => number;
}

/** Standard error of a program. */
export type StandardError = Writable & { readonly fd: number; readonly isTTY?: boolean };

/**
 * Opens the log on standard error. Neither a full disk nor a reader who stands still or has gone stops
 * or slows the program: lines wait, within bounds, and what goes beyond is counted and said later.
 */
export async function openLog(options: {
  readonly stderr: StandardError;
  readonly level: string;
  readonly form: 'auto' | LogFormat['form'];
  readonly time: LogFormat['time'];
  readonly levelForm: LogFormat['level'];
  readonly name?: string;
}): Promise<OpenedLog> {
  const { stderr, level, time, levelForm, name } = options;
  const isTerminal = stderr.isTTY === true;
  const form = options.form === 'auto' ? (isTerminal ? 'text' : 'json') : options.form;
  // What the write of a line meets is told to its writer; without a listener it would end the program.
  stderr.on('error', () => {});
  const { output, descriptor } = outputTo(stderr);
  const writer = createLogWriter({
    output,
    onResume: (lines) => log.warn({ droppedLines: lines }, 'log lines lost, not read in time'),
  });
  const log = await createLog({
    level,
    format: { form, time, level: levelForm, isTerminal },
    ...(name !== undefined && { name }),
    write: (line) => writer.write(line),
  });
  return {
    log,
    flush: (deadlineMs) => writer.flush(deadlineMs),
    flushNow: () => writeNow(descriptor, writer.takeRest()),
    droppedLogLines: () => writer.droppedLines,
  };
}

/** How often a terminal that was stopped is tried again. */
const stoppedTerminalRetryMs = 50;

/**
 * Writes a text without ever waiting for its reader: to a terminal that was stopped (Ctrl-S) once it goes on. A write
 * of Node's own to a terminal would stop the whole program until then.
 */
export function writeWithoutWaiting(stream: StandardError, text: string): void {
  if (stream.isTTY !== true) {
    stream.write(text);
    return;
  }
  const { output, descriptor } = outputTo(stream);
  const attempt = (bytes: Buffer): void =>
    output(bytes, (error, writtenBytes) => {
      const rest = error === null ? bytes.subarray(writtenBytes) : bytes;
      if (rest.length > 0 && (error === null || error.code === 'EAGAIN')) {
        setTimeout(attempt, stoppedTerminalRetryMs, rest).unref();
      } else if (descriptor !== stream.fd) {
        closeSync(descriptor);
      }
    });
  attempt(Buffer.from(text));
}

/** How to write to standard error, and the descriptor for what must be written at once. */
function outputTo(stderr: StandardError): { output: LogOutput; descriptor: number } {
  const { fd: descriptor, isTTY: isTerminal = false } = stderr;
  const kind = fstatSync(descriptor);
  if (kind.isFIFO() || kind.isSocket()) return { output: streamOutput(stderr), descriptor };
  const own = isTerminal ? reopenedTerminal(descriptor) : descriptor;
  return { output: fileOutput(own), descriptor: own };
}

/** The terminal, opened once more, so that a write to one that was stopped (Ctrl-S) does not wait. */
function reopenedTerminal(descriptor: number): number {
  const { O_WRONLY, O_NONBLOCK, O_NOCTTY } = constants;
  try {
    return openSync(`/dev/fd/${descriptor}`, O_WRONLY | O_NONBLOCK | O_NOCTTY);
  } catch {
    return descriptor;
  }
}
