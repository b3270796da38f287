import { close, fstat, open, stat, write } from 'node:fs';
import type { Logger } from 'pino';
import { createLogWriter, type LogOutput } from '../logging/log-writer.ts';

/** The audit log as lines of JSON in a file, for programs that collect logs. */
export interface AuditFile extends AsyncDisposable {
  /** Never throws and never waits: what cannot be written in time is counted. */
  write(entry: object): void;
  /** Lines lost because the file took none. */
  readonly droppedLines: number;
}

const flushMs = 2_000;

/**
 * Appends to a file, which is opened again once it was moved or deleted, as programs that rotate logs do. While it
 * cannot be written, lines wait within bounds.
 */
export function openAuditFile({
  file,
  log,
}: {
  /** Absolute path. */
  readonly file: string;
  readonly log: Logger;
}): AuditFile {
  const { output, closeFile } = createRotatedOutput(file, log);
  const writer = createLogWriter({
    output,
    onResume: (lines) => log.warn({ file, lines }, 'audit file lines lost'),
  });
  return {
    write: (entry) => writer.write(`${JSON.stringify(entry)}\n`),
    get droppedLines() {
      return writer.droppedLines;
    },
    async [Symbol.asyncDispose]() {
      await writer.flush(flushMs);
      closeFile();
    },
  };
}

function createRotatedOutput(
  file: string,
  log: Logger,
): { readonly output: LogOutput; closeFile(): void } {
  let descriptor: number | undefined;
  let isFailing = false;

  function closeFile(): void {
    if (descriptor !== undefined) close(descriptor, () => {});
    descriptor = undefined;
  }

  /** Calls back with the file that has the name now. */
  function withFile(
    work: (error: NodeJS.ErrnoException | null, opened: number | undefined) => void,
  ): void {
    const opened = descriptor;
    if (opened === undefined) {
      open(file, 'a', 0o640, (error, fresh) => {
        if (error === null) descriptor = fresh;
        work(error, descriptor);
      });
      return;
    }
    fstat(opened, (failure, own) => {
      stat(file, (missing, named) => {
        const isSame =
          failure === null && missing === null && own.ino === named.ino && own.dev === named.dev;
        if (isSame) return work(null, opened);
        closeFile();
        withFile(work);
      });
    });
  }

  function reported(error: NodeJS.ErrnoException | null): void {
    if (error !== null && !isFailing) {
      log.error({ err: error, file }, 'audit file (Hub.audit_file) cannot be written');
    }
    if (error === null && isFailing) log.info({ file }, 'audit file can be written again');
    isFailing = error !== null;
  }

  return {
    closeFile,
    output(bytes, done) {
      withFile((problem, opened) => {
        if (problem !== null || opened === undefined) {
          reported(problem);
          done(problem, 0);
          return;
        }
        write(opened, bytes, 0, bytes.length, null, (error, count) => {
          reported(error);
          done(error, error === null ? count : 0);
        });
      });
    },
  };
}
