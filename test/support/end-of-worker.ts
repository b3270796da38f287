import { killTrees } from './leftovers.ts';

/** Ends the worker with everything that its tests have left running, such as those that failed or took too long. */
function end(): void {
  killTrees([process.pid]);
  process.exit();
}

// Vitest ends its workers so, and one whose Vitest is gone has nobody to report to.
process.once('SIGTERM', end);
process.once('disconnect', end);
