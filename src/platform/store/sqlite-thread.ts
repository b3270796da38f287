/**
 * The thread of an SQLite file, and then of the next one: opens the file that it is asked for, and answers one message
 * for each statement, in order, until it is to close it. Started by `threaded-sqlite-engine.ts`, never imported for its
 * effect.
 */
import { type MessagePort, parentPort } from 'node:worker_threads';
import {
  openDatabaseFile,
  type Statement,
  type StatementResult,
  StatementRunner,
} from './sqlite-engine.ts';

/** What the thread is asked first, and then again after each file. */
export interface ThreadOptions {
  readonly file: string;
  /** How long a statement waits for the lock of another process. */
  readonly lockTimeoutMs: number;
  readonly isReadOnly?: boolean;
}

/** A statement to run, several to run in one transaction, or the wish to close. */
export type ThreadRequest =
  | (Statement & { readonly isLast: boolean })
  | { readonly together: readonly Statement[] }
  | 'close';

/** The answer to the opening or closing of the file, with no result, or to one statement or several. */
export interface ThreadAnswer {
  readonly result?: StatementResult;
  readonly outcomes?: readonly ThreadOutcome[];
  readonly error?: ThreadError;
  readonly isInTransaction: boolean;
}

export type ThreadOutcome = { readonly result: StatementResult } | { readonly error: ThreadError };

/** An error in a form that survives the way between threads. */
export interface ThreadError {
  readonly message: string;
  readonly properties: Readonly<Record<string, unknown>>;
}

/** `SQLITE_BUSY` and `SQLITE_LOCKED` (https://sqlite.org/rescode.html). */
const lockedCodes: readonly number[] = [5, 6];

if (parentPort !== null) awaitFile(parentPort);

function awaitFile(port: MessagePort): void {
  port.once('message', (options: ThreadOptions) => serve(port, options));
}

function serve(port: MessagePort, options: ThreadOptions): void {
  const answer = (message: ThreadAnswer) => port.postMessage(message);
  const database = attempt(() => openDatabaseFile(options));
  if ('error' in database) {
    awaitFile(port);
    answer({ ...database, isInTransaction: false });
    return;
  }
  const { result: open } = database;
  const statements = new StatementRunner(open);
  let wasLocked = false;

  /**
   * Once the limit was reached, later statements try only once until one succeeds: otherwise everything queued behind
   * would wait the whole time in turn.
   */
  function limitWaiting(error: ThreadError | undefined): void {
    const isLocked = lockedCodes.includes(Number(error?.properties['errcode']) & 0xff);
    if (isLocked === wasLocked) return;
    wasLocked = isLocked;
    open.exec(`pragma busy_timeout = ${isLocked ? 0 : options.lockTimeoutMs}`);
  }

  port.on('message', function onMessage(request: ThreadRequest) {
    if (request === 'close') {
      open.close();
      awaitFile(port);
      port.off('message', onMessage);
      answer({ isInTransaction: false });
      return;
    }
    const outcome =
      'together' in request
        ? outcomesOf(statements, request.together)
        : attempt(() =>
            request.isLast
              ? statements.runLast(request.sql, request.parameters)
              : statements.run(request.sql, request.parameters),
          );
    limitWaiting('error' in outcome ? outcome.error : undefined);
    answer({ ...outcome, isInTransaction: open.isTransaction });
  });
  answer({ isInTransaction: false });
}

function outcomesOf(
  statements: StatementRunner,
  together: readonly Statement[],
): Pick<ThreadAnswer, 'outcomes' | 'error'> {
  const all = attempt(() => statements.runTogether(together));
  if ('error' in all) return all;
  const outcomes = all.result.map((outcome) =>
    'error' in outcome ? { error: toThreadError(outcome.error) } : outcome,
  );
  return { outcomes };
}

function attempt<Result>(
  action: () => Result,
): { readonly result: Result } | { readonly error: ThreadError } {
  try {
    return { result: action() };
  } catch (thrown) {
    return { error: toThreadError(thrown) };
  }
}

function toThreadError(thrown: unknown): ThreadError {
  const error = thrown instanceof Error ? thrown : new Error(String(thrown));
  return { message: error.message, properties: { ...error } };
}
