import { z } from 'zod';
import { forEachAtOnce } from '../../platform/concurrency/for-each-at-once.ts';
import { timeLimit } from '../../platform/concurrency/time-limit.ts';
import { readTextBody } from '../../platform/http/body.ts';
import { answerOf } from '../../spawning/processes/readiness-probe.ts';
import type { Server } from './server.ts';
import type { KernelList, ServerRoutes } from './server-routes.ts';

/** Of Jupyter: what a server says of its kernels, for whoever may know that they are busy. */
export interface BusyKernels {
  /**
   * Asks servers that are about to be stopped for being idle whether a kernel is busy, and calls `onBusy` with those
   * where one is, which may take no CPU time while it waits. A server that does not answer as Jupyter has none.
   */
  lookAt(serverIds: readonly string[]): Promise<void>;
  /**
   * The busy ones of a running server now: the path of a notebook where sessions are listed, else the name of a kernel;
   * both are what the user calls them. Undefined where the server cannot be asked from here, or does not answer.
   */
  namesOf(server: Server): Promise<readonly string[] | undefined>;
}

const parallelQuestions = 64;
const defaultTimeoutMs = 5_000;
/** How long a reader waits at most. */
const readerTimeoutMs = 1_000;
const maxBytes = 1_000_000;
const maxNames = 5;
const maxNameLength = 100;

const kernel = z.object({ execution_state: z.string().optional(), name: z.string().optional() });
/** Jupyter Server: `GET /api/kernels`, `GET /api/sessions`. */
const lists = z.array(
  z.union([z.object({ path: z.string(), kernel }), kernel.transform((each) => ({ kernel: each }))]),
);

export function createBusyKernels(deps: {
  readonly serverRoutes: Pick<ServerRoutes, 'kernelLists' | 'kernelListOf'>;
  readonly onBusy: (serverId: string) => void;
  readonly timeoutMs?: number;
}): BusyKernels {
  const { serverRoutes, onBusy, timeoutMs = defaultTimeoutMs } = deps;

  async function busyOf(list: KernelList, limitMs: number): Promise<readonly string[] | undefined> {
    try {
      const response = await answerOf(list, timeLimit(limitMs));
      const listed = lists.parse(JSON.parse(await readTextBody(response, maxBytes)));
      return listed
        .filter((each) => each.kernel.execution_state === 'busy')
        .map((each) => ('path' in each ? each.path : each.kernel.name) ?? '');
    } catch {
      return undefined;
    }
  }

  return {
    lookAt: (serverIds) =>
      forEachAtOnce(
        parallelQuestions,
        serverRoutes.kernelLists(new Set(serverIds)),
        async ([serverId, list]) => {
          if (((await busyOf(list, timeoutMs))?.length ?? 0) > 0) onBusy(serverId);
        },
      ),

    async namesOf(server) {
      const list = server.state === 'running' ? serverRoutes.kernelListOf(server) : undefined;
      const names = list && (await busyOf(list, Math.min(timeoutMs, readerTimeoutMs)));
      return names?.slice(0, maxNames).map(plain);
    },
  };
}

/** A name without what would change how the text around it reads. */
function plain(name: string): string {
  const shown = name.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '');
  return shown.length > maxNameLength ? `…${shown.slice(-maxNameLength)}` : shown;
}
