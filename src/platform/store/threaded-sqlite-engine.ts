import { Worker } from 'node:worker_threads';
import { HubError } from '../errors.ts';
import { programFile } from '../files/program-folder.ts';
import { text } from '../texts/text.ts';
import type { SqliteEngine, StatementResult } from './sqlite-engine.ts';
import type { ThreadAnswer, ThreadError, ThreadOptions, ThreadRequest } from './sqlite-thread.ts';

const program = programFile('src/platform/store/sqlite-thread');

/** Threads whose file was closed: to start another one takes several times as long as to open a file. */
const idle = new Set<Worker>();

/**
 * Opens an SQLite file in a thread of its own. A commit waits until the disk has it, which takes a
 * fraction of a millisecond on a good day and a second on a bad one: no one else must wait for it.
 * Rejects with what `node:sqlite` throws when the file cannot be opened.
 */
export async function openThreadedEngine(options: ThreadOptions): Promise<SqliteEngine> {
  const worker = takeIdle() ?? startWorker();
  /** Those who wait for an answer; the thread answers in order. */
  const waiting: PromiseWithResolvers<ThreadAnswer>[] = [];
  let isInTransaction = false;
  let closing: Promise<void> | undefined;
  let failure: unknown;
  let end: HubError | undefined;

  const onMessage = (answer: ThreadAnswer) => {
    ({ isInTransaction } = answer);
    const asked = waiting.shift();
    if (answer.error === undefined) asked?.resolve(answer);
    else asked?.reject(toError(answer.error));
    // Like a database in the main thread, one that is not asked keeps no process from ending.
    if (waiting.length === 0) worker.unref();
  };
  const onError = (error: unknown) => {
    failure = error;
  };
  const onExit = () => {
    const message = text`The thread of the database has ended: restart the hub.`;
    end ??= new HubError('storage_unavailable', message, { cause: failure });
    isInTransaction = false;
    for (const { reject } of waiting.splice(0)) reject(end);
  };
  worker.on('message', onMessage).on('error', onError).on('exit', onExit);

  function nextAnswer(): Promise<ThreadAnswer> {
    const asked = Promise.withResolvers<ThreadAnswer>();
    waiting.push(asked);
    worker.ref();
    return asked.promise;
  }

  async function ask(request: ThreadOptions | ThreadRequest): Promise<ThreadAnswer> {
    if (end !== undefined) throw end;
    // First, because it throws when a parameter cannot be sent, and then no answer comes.
    worker.postMessage(request);
    return nextAnswer();
  }

  function release(): void {
    worker.off('message', onMessage).off('error', onError).off('exit', onExit);
    idle.add(worker);
  }

  async function close(): Promise<void> {
    const closed = ask('close');
    end ??= new HubError('storage_unavailable', text`The database is closed.`);
    // The thread may have ended before.
    await closed.then(release, () => undefined);
  }

  try {
    await ask(options);
  } catch (error) {
    if (end === undefined) release();
    throw error;
  }
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
    close: () => (closing ??= close()),
  };
}

function startWorker(): Worker {
  // The flags of the process are for its own program: some would keep the thread from starting.
  const worker = new Worker(program, { name: 'sqlite', execArgv: [] });
  // Told to the engine that uses it; without a listener it would end the process.
  worker.on('error', () => idle.delete(worker));
  worker.once('exit', () => idle.delete(worker));
  return worker;
}

function takeIdle(): Worker | undefined {
  const [worker] = idle;
  if (worker !== undefined) idle.delete(worker);
  return worker;
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
