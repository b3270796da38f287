interface Work {
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
