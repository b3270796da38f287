interface Work {
  readonly run: (subject: unknown) => void;
  readonly subject: unknown;
}

const waiting: Work[] = [];
let isScheduled = false;

/**
 * Calls back in a turn of the event loop in which nothing else of this kind runs, in the order of the calls. For work of a
 * millisecond or so of which anyone can make any amount: everything else has its turn in between.
 */
export function inOwnTurn<Subject>(run: (subject: Subject) => void, subject: Subject): void {
  waiting.push({ run: run as Work['run'], subject });
  if (isScheduled) return;
  isScheduled = true;
  setImmediate(runOne);
}

function runOne(): void {
  const work = waiting.shift();
  isScheduled = waiting.length > 0;
  if (isScheduled) setImmediate(runOne);
  work?.run(work.subject);
}
