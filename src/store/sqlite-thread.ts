/**
 * The thread of an SQLite file: opens the file it is told of, then answers one message for each
 * statement, in order. Started by `threaded-sqlite-engine.ts`, never imported for its effect.
 */
import type { SQLInputValue } from 'node:sqlite';
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { collectWhenQuiet } from '../undocumented/collect-garbage.ts';
import { openDatabaseFile, type StatementResult, StatementRunner } from './sqlite-engine.ts';

/** What the thread is started with. */
export interface ThreadOptions {
  readonly file: string;
  readonly lockTimeoutMs: number;
}

/** A statement to run, or the wish to close. */
export type ThreadRequest =
  | { readonly sql: string; readonly parameters: readonly SQLInputValue[] }
  | 'close';

/** The answer to the opening of the file, with no result, or to one statement. */
export interface ThreadAnswer {
  readonly result?: StatementResult;
  readonly error?: ThreadError;
  readonly isInTransaction: boolean;
}

/** An error in a form that survives the way between threads. */
export interface ThreadError {
  readonly message: string;
  readonly properties: Readonly<Record<string, unknown>>;
}

if (parentPort !== null) serve(parentPort, workerData as ThreadOptions);

function serve(port: MessagePort, { file, lockTimeoutMs }: ThreadOptions): void {
  const answer = (message: ThreadAnswer) => port.postMessage(message);
  const database = attempt(() => openDatabaseFile({ file, lockTimeoutMs }));
  if ('error' in database) {
    answer({ ...database, isInTransaction: false });
    return;
  }
  const { result: open } = database;
  const statements = new StatementRunner(open);
  port.on('message', (request: ThreadRequest) => {
    if (request === 'close') {
      open.close();
      port.close();
      return;
    }
    const outcome = attempt(() => statements.run(request.sql, request.parameters));
    answer({ ...outcome, isInTransaction: open.isTransaction });
  });
  answer({ isInTransaction: false });
  // To bring the schema up to date takes more memory than all that follows.
  collectWhenQuiet();
}

function attempt<Result>(
  action: () => Result,
): { readonly result: Result } | { readonly error: ThreadError } {
  try {
    return { result: action() };
  } catch (thrown) {
    const error = thrown instanceof Error ? thrown : new Error(String(thrown));
    return { error: { message: error.message, properties: { ...error } } };
  }
}
