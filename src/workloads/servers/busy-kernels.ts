import { z } from 'zod';
import { forEachAtOnce } from '../../platform/concurrency/for-each-at-once.ts';
import { timeLimit } from '../../platform/concurrency/time-limit.ts';
import { readTextBody } from '../../platform/http/body.ts';
import { answerOf } from '../../spawning/processes/readiness-probe.ts';
import type { KernelList, ServerRoutes } from './server-routes.ts';

const parallelQuestions = 64;
const defaultTimeoutMs = 5_000;
const maxBytes = 1_000_000;
const kernels = z.array(z.object({ execution_state: z.string().optional() }));

/**
 * Asks servers that are about to be stopped for being idle whether a kernel is busy, and calls `onBusy` with those where
 * one is, which may take no CPU time while it waits. A server that does not answer as Jupyter has none.
 */
export function createBusyKernels(deps: {
  readonly serverRoutes: Pick<ServerRoutes, 'kernelLists'>;
  readonly onBusy: (serverId: string) => void;
  readonly timeoutMs?: number;
}): (serverIds: readonly string[]) => Promise<void> {
  const { serverRoutes, onBusy, timeoutMs = defaultTimeoutMs } = deps;

  async function isBusy(list: KernelList): Promise<boolean> {
    try {
      const response = await answerOf(list, timeLimit(timeoutMs));
      const listed = kernels.parse(JSON.parse(await readTextBody(response, maxBytes)));
      return listed.some((kernel) => kernel.execution_state === 'busy');
    } catch {
      return false;
    }
  }

  return (serverIds) =>
    forEachAtOnce(
      parallelQuestions,
      serverRoutes.kernelLists(new Set(serverIds)),
      async ([serverId, list]) => {
        if (await isBusy(list)) onBusy(serverId);
      },
    );
}
