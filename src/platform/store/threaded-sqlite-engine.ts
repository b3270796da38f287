import { Worker } from 'node:worker_threads';
import { HubError } from '../errors.ts';
import { programFile } from '../files/program-folder.ts';
import { text } from '../texts/text.ts';
import type { SqliteEngine, StatementResult } from './sqlite-engine.ts';
import type { ThreadAnswer, ThreadError, ThreadOptions, ThreadRequest } from './sqlite-thread.ts';

const program = programFile('src/platform/store/sqlite-thread');

/**
 * Opens an SQLite file in a thread of its own. A commit waits until the disk has it, which takes a
 * fraction of a millisecond on a good day and a second on a bad one: no one else must wait for it.
 * Rejects with what `node:sqlite` throws when the file cannot be opened.
 */
export async function openThreadedEngine(options: ThreadOptions): Promise<SqliteEngine> {
  // The flags of the process are for its own program: some would keep the thread from starting.
  const worker = new Worker(program, { workerData: options, name: 'sqlite', execArgv: [] });
  /** Those who wait for an answer; the thread answers in order. */
  const waiting: PromiseWithResolvers<ThreadAnswer>[] = [];
  let isInTransaction = false;
  let isClosing = false;
  let failure: unknown;
  let end: HubError | undefined;

  worker.on('message', (answer: ThreadAnswer) => {
    ({ isInTransaction } = answer);
    const asked = waiting.shift();
    if (answer.error === undefined) asked?.resolve(answer);
    else asked?.reject(toError(answer.error));
    // Like a database in the main thread, one that is not asked keeps no process from ending.
    if (waiting.length === 0 && !isClosing) worker.unref();
  });
  worker.once('error', (error) => {
    failure = error;
  });
  const exited = new Promise<void>((resolve) => {
    worker.once('exit', () => {
      const message = isClosing
        ? text`The database is closed.`
        : text`The thread of the database has ended: restart the hub.`;
      end = new HubError('storage_unavailable', message, { cause: failure });
      isInTransaction = false;
      for (const { reject } of waiting.splice(0)) reject(end);
      resolve();
    });
  });

  function nextAnswer(): Promise<ThreadAnswer> {
    const asked = Promise.withResolvers<ThreadAnswer>();
    waiting.push(asked);
    worker.ref();
    return asked.promise;
  }

  async function ask(request: ThreadRequest): Promise<ThreadAnswer> {
    if (end !== undefined) throw end;
    // First, because it throws when a parameter cannot be sent, and then no answer comes.
    worker.postMessage(request);
    return nextAnswer();
  }

  await nextAnswer();
  return {
    get isInTransaction() {
      return isInTransaction;
    },
    async run(sql, parameters, isLast = false) {
      const { result = noResult } = await ask({ sql, parameters, isLast });
      return result;
    },
    async runTogether(together) {
      const { outcomes = [] } = await ask({ together });
      return outcomes.map((outcome) =>
        'error' in outcome ? { error: toError(outcome.error) } : outcome,
      );
    },
    async close() {
      if (!isClosing && end === undefined) worker.postMessage('close' satisfies ThreadRequest);
      isClosing = true;
      worker.ref();
      await exited;
    },
  };
}

/** An engine that is opened when something is asked for the first time. */
export function createLateEngine(open: () => Promise<SqliteEngine>): SqliteEngine {
  let opening: Promise<SqliteEngine> | undefined;
  let isInTransaction = false;

  async function ask<Answer>(question: (engine: SqliteEngine) => Promise<Answer>): Promise<Answer> {
    opening ??= open().catch((error: unknown) => {
      opening = undefined;
      throw error;
    });
    const engine = await opening;
    try {
      return await question(engine);
    } finally {
      ({ isInTransaction } = engine);
    }
  }

  return {
    get isInTransaction() {
      return isInTransaction;
    },
    run: (sql, parameters, isLast) => ask((engine) => engine.run(sql, parameters, isLast)),
    runTogether: (statements) => ask((engine) => engine.runTogether(statements)),
    async close() {
      await (await opening?.catch(() => undefined))?.close();
    },
  };
}

const noResult: StatementResult = { rows: [], changes: 0, lastInsertRowid: 0 };

function toError({ message, properties }: ThreadError): Error {
  return Object.assign(new Error(message), properties);
}
