import { createLimiter } from '../../platform/concurrency/limiter.ts';
import { systemClock } from '../processes/clock.ts';
import { startProcess } from '../processes/supervised-process.ts';

const maxForkPauseMs = 20;

/**
 * Starts processes one after the other, with as long a pause as each took: while a process is forked the hub can do
 * nothing else, and others wait for it too.
 */
export function createTurns(): typeof startProcess {
  const limiter = createLimiter(1);
  return (options) =>
    new Promise((resolve, reject) => {
      void limiter(async () => {
        const begunAt = systemClock.monotonicMs();
        await startProcess(options).then(resolve, reject);
        await systemClock.sleep(Math.min(systemClock.monotonicMs() - begunAt, maxForkPauseMs));
      });
    });
}
