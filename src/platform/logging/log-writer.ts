import { write as writeFile, writeSync } from 'node:fs';
import type { Writable } from 'node:stream';
import { withoutDeceptiveCharacters, withoutTokens } from './masked-tokens.ts';

/** Writes some or all of the bytes and then tells how many, without ever blocking the caller. */
export type LogOutput = (
  bytes: Uint8Array,
  done: (error: NodeJS.ErrnoException | null, writtenBytes: number) => void,
) => void;

/** Takes the lines of a log, and writes them without the hub's tokens. Nothing that happens to them stops, slows or grows the program. */
export interface LogWriter {
  /** Takes a line with its newline; drops it when too much waits to be written. */
  write(line: string): void;
  /** Waits until all lines taken are written or lost; false when that takes longer than the time. */
  flush(deadlineMs: number): Promise<boolean>;
  /** Takes out what is not being written yet; for a program that ends at once. */
  takeRest(): Uint8Array;
  /** Lines lost since the start. */
  readonly droppedLines: number;
}

/** Lines that may wait for the reader: seconds of a busy hub, hours of a quiet one. */
const defaultMaxPendingChars = 2 * 1024 * 1024;
/** A busy log is written so often, many lines at once: a write costs more than a line. */
const writeIntervalMs = 50;
/** So many characters are written at once. */
const batchChars = 64 * 1024;
/** A terminal or pipe that takes nothing now. */
const busyCodes = new Set(['EAGAIN', 'EBUSY', 'EINTR']);
const busyRetryMs = 20;
/** A full disk, or a file server that is away. */
const failedRetryMs = 1_000;
/** There will be no reader any more: the other end of the pipe is closed. */
const goneCodes = new Set([
  'EPIPE',
  'ECONNRESET',
  'EBADF',
  'ERR_STREAM_DESTROYED',
  'ERR_STREAM_WRITE_AFTER_END',
]);

/** `onResume` is told how many lines were dropped once lines are written again. */
export function createLogWriter(options: {
  readonly output: LogOutput;
  readonly onResume: (droppedLines: number) => void;
  readonly maxPendingChars?: number;
}): LogWriter {
  const { output, onResume, maxPendingChars = defaultMaxPendingChars } = options;
  let pending: string[] = [];
  let pendingChars = 0;
  let batch: Buffer | undefined;
  let batchLines = 0;
  let isScheduled = false;
  let timer: NodeJS.Timeout | undefined;
  let isGone = false;
  let lastWriteMs = Number.NEGATIVE_INFINITY;
  let droppedLines = 0;
  let unreportedLines = 0;
  let idleListeners: (() => void)[] = [];

  function drop(lines: number): void {
    droppedLines += lines;
    unreportedLines += lines;
  }

  function nextBatch(): Buffer | undefined {
    if (pending.length === 0) return undefined;
    let lines = 0;
    let chars = 0;
    while (lines < pending.length && (lines === 0 || chars < batchChars)) {
      chars += pending[lines]?.length ?? 0;
      lines += 1;
    }
    const text = lines === pending.length ? pending.join('') : pending.slice(0, lines).join('');
    pending = lines === pending.length ? [] : pending.slice(lines);
    pendingChars -= chars;
    batchLines = lines;
    return Buffer.from(withoutDeceptiveCharacters(withoutTokens(text)));
  }

  function schedule(): void {
    isScheduled = true;
    const sinceLastMs = performance.now() - lastWriteMs;
    if (sinceLastMs >= writeIntervalMs) setImmediate(writeBatch);
    else timer = setTimeout(writeBatch, writeIntervalMs - sinceLastMs);
  }

  function writeBatch(): void {
    clearTimeout(timer);
    timer = undefined;
    batch ??= nextBatch();
    if (batch === undefined) {
      becomeIdle();
      return;
    }
    lastWriteMs = performance.now();
    output(batch, written);
  }

  function written(error: NodeJS.ErrnoException | null, bytes: number): void {
    if (error !== null) {
      failed(error);
      return;
    }
    if (batch !== undefined && bytes < batch.length) {
      batch = batch.subarray(bytes);
      writeBatch();
      return;
    }
    batch = undefined;
    batchLines = 0;
    if (pending.length > 0) {
      if (pendingChars >= batchChars || idleListeners.length > 0) writeBatch();
      else schedule();
      return;
    }
    becomeIdle();
    const lines = unreportedLines;
    unreportedLines = 0;
    if (lines > 0) onResume(lines);
  }

  function failed({ code = '' }: NodeJS.ErrnoException): void {
    if (goneCodes.has(code)) {
      isGone = true;
      drop(batchLines + pending.length);
      batch = undefined;
      pending = [];
      pendingChars = 0;
      becomeIdle();
      return;
    }
    setTimeout(writeBatch, busyCodes.has(code) ? busyRetryMs : failedRetryMs).unref();
  }

  function becomeIdle(): void {
    isScheduled = false;
    const listeners = idleListeners;
    idleListeners = [];
    for (const listener of listeners) listener();
  }

  return {
    write(line) {
      if (isGone || pendingChars + line.length > maxPendingChars) {
        drop(1);
        return;
      }
      pending.push(line);
      pendingChars += line.length;
      if (!isScheduled) schedule();
      // Lines that waited longer would grow old for the garbage collector: most of what it has to collect with pauses.
      else if (timer !== undefined && pendingChars >= batchChars) writeBatch();
    },
    async flush(deadlineMs) {
      if (!isScheduled) return true;
      const { promise, resolve } = Promise.withResolvers<boolean>();
      idleListeners.push(() => resolve(true));
      const timer = setTimeout(() => resolve(false), deadlineMs);
      const isFlushed = await promise;
      clearTimeout(timer);
      return isFlushed;
    },
    takeRest() {
      const rest = Buffer.from(withoutTokens(pending.join('')));
      pending = [];
      pendingChars = 0;
      return rest;
    },
    get droppedLines() {
      return droppedLines;
    },
  };
}

/** Writes to a regular file or a terminal, away from the event loop. */
export function fileOutput(descriptor: number): LogOutput {
  return (bytes, done) => {
    writeFile(descriptor, bytes, 0, bytes.length, null, (error, count) => done(error, count));
  };
}

/** Writes to a pipe or a socket, which the event loop waits for. */
export function streamOutput(stream: Writable): LogOutput {
  return (bytes, done) => {
    stream.write(bytes, (error) => done(error ?? null, error == null ? bytes.length : 0));
  };
}

/** Writes what can be written at once; the rest is lost. For a program that ends. */
export function writeNow(descriptor: number, bytes: Uint8Array): void {
  try {
    if (bytes.length > 0) writeSync(descriptor, bytes);
  } catch {
    // A full disk or a reader that stands still: there is no one left to tell.
  }
}
