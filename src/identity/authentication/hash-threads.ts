import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { createLimiter } from '../../platform/concurrency/limiter.ts';
import { HubError } from '../../platform/errors.ts';
import { programFile } from '../../platform/files/program-folder.ts';
import { text } from '../../platform/texts/text.ts';
import type { HashAnswer, HashJob } from './hash-thread.ts';

const program = programFile('src/identity/authentication/hash-thread');

/** More would only share the bandwidth to the memory, of which Argon2 takes all there is. */
const maxThreads = Math.max(1, Math.min(4, availableParallelism()));
/** A hub without password logins needs no threads for them. */
const idleEndMs = 10_000;

interface IdleThread {
  readonly worker: Worker;
  readonly end: NodeJS.Timeout;
}

const idle: IdleThread[] = [];
const limiter = createLimiter(maxThreads);

/**
 * Works out a hash in one of a few threads that do nothing else: Node's own pool has four, on which files
 * are read and names are looked up, too. Jobs wait in the order in which they come. The threads are those of
 * the process, as its cores are; they start when they are needed, and keep no process from ending.
 * Throws `unavailable` when a thread dies.
 */
export function hashInThread(job: HashJob): Promise<Buffer> {
  return limiter(async () => {
    const worker = takeIdle() ?? startWorker();
    const answer = await answerOf(worker, job);
    putIdle(worker);
    if ('error' in answer) throw new Error(`a password hash failed: ${answer.error}`);
    return Buffer.from(answer.tag);
  });
}

function startWorker(): Worker {
  // The flags of the process are for its own program: some would keep the thread from starting.
  const worker = new Worker(program, { name: 'hash', execArgv: [] });
  worker.once('exit', () => forget(worker));
  // Told to the one who waits for its answer; without a listener it would end the process.
  worker.on('error', () => forget(worker));
  return worker;
}

function answerOf(worker: Worker, job: HashJob): Promise<HashAnswer> {
  const answer = Promise.withResolvers<HashAnswer>();
  const fail = (cause: unknown) => {
    answer.reject(new HubError('unavailable', text`The password could not be checked.`, { cause }));
  };
  worker.once('error', fail);
  worker.once('exit', fail);
  worker.once('message', answer.resolve);
  worker.postMessage(job);
  return answer.promise.finally(() => {
    worker.off('error', fail);
    worker.off('exit', fail);
    worker.off('message', answer.resolve);
  });
}

/** Keeps a thread for the next job, and ends it when there is none for a while. */
function putIdle(worker: Worker): void {
  worker.unref();
  const end = setTimeout(() => {
    forget(worker);
    void worker.terminate();
  }, idleEndMs);
  end.unref();
  idle.push({ worker, end });
}

function takeIdle(): Worker | undefined {
  const last = idle.pop();
  if (last === undefined) return undefined;
  clearTimeout(last.end);
  last.worker.ref();
  return last.worker;
}

function forget(worker: Worker): void {
  const index = idle.findIndex((thread) => thread.worker === worker);
  if (index !== -1) clearTimeout(idle.splice(index, 1)[0]?.end);
}
