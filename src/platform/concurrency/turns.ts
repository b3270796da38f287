import { setImmediate as nextTurn } from 'node:timers/promises';

export interface Work {
  readonly run: (subject: unknown) => void;
  readonly subject: unknown;
}

/** More are not kept waiting for one another. */
const maxWaiting = 64;

let waiting: Work[] = [];
let isScheduled = false;

/**
 * Calls back when everything that has arrived is read: at the end of this turn of the event loop, or as soon as many
 * wait for that. Meant for what is sent. To send is to wake the program at the other end, which on another core costs
 * more than all the rest of a small request; when all is sent together, it is woken once and finds work for a while.
 */
export function atEndOfTurn<Subject>(run: (subject: Subject) => void, subject: Subject): void {
  waiting.push({ run: run as Work['run'], subject });
  if (waiting.length >= maxWaiting) {
    runAll();
  } else if (!isScheduled) {
    isScheduled = true;
    setImmediate(endTurn);
  }
}

function endTurn(): void {
  isScheduled = false;
  runAll();
}

function runAll(): void {
  const works = waiting;
  waiting = [];
  let done = 0;
  try {
    for (const { run, subject } of works) {
      done += 1;
      run(subject);
    }
  } finally {
    // One that throws does not keep the others from being sent.
    for (const { run, subject } of works.slice(done)) atEndOfTurn(run, subject);
  }
}

const alone: Work[] = [];
let isOneScheduled = false;

/**
 * Calls back in a turn of the event loop in which nothing else of this kind runs, in the order of the calls. For work of a
 * millisecond or so of which anyone can make any amount: everything else has its turn in between.
 */
export function inOwnTurn<Subject>(run: (subject: Subject) => void, subject: Subject): void {
  alone.push({ run: run as Work['run'], subject });
  if (isOneScheduled) return;
  isOneScheduled = true;
  setImmediate(runOne);
}

function runOne(): void {
  const work = alone.shift();
  isOneScheduled = alone.length > 0;
  if (isOneScheduled) setImmediate(runOne);
  work?.run(work.subject);
}

/** How long work may follow work before others get a turn of the event loop. */
const maxTurnMs = 5;

/**
 * Makes work that comes in bursts share the event loop: queries whose promises are settled when they are
 * returned, or requests that arrive together. A burst would otherwise run from its first piece to its last
 * while everything else, such as a health check, waits.
 *
 * The returned function is to be awaited before each piece of work: it resolves at once, or in a later turn
 * of the event loop when this one has lasted 5 ms.
 */
export function createEventLoopYield(): () => Promise<void> {
  let begunAtMs: number | undefined;

  return async () => {
    while (begunAtMs !== undefined && performance.now() - begunAtMs > maxTurnMs) {
      await nextTurn();
    }
    if (begunAtMs !== undefined) return;
    begunAtMs = performance.now();
    setImmediate(() => {
      begunAtMs = undefined;
    });
  };
}
