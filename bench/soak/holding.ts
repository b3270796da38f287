import { readdirSync } from 'node:fs';
import process from 'node:process';
import { setTimeout as pause } from 'node:timers/promises';

/** What a hub holds at a moment when nobody uses it. */
export interface Holding {
  readonly openFiles: number;
  readonly sockets: number;
  readonly heapBytes: number;
  readonly externalBytes: number;
  readonly rssBytes: number;
}

/** Measures this process, which was started with --expose-gc. */
export async function measureHolding(): Promise<Holding> {
  // Weak references and finalisers need more than one turn.
  for (let round = 0; round < 5; round += 1) {
    globalThis.gc?.();
    await pause(50);
  }
  const { heapUsed, rss, external } = process.memoryUsage();
  const resources = process.getActiveResourcesInfo();
  return {
    openFiles: readdirSync('/proc/self/fd').length,
    sockets: resources.filter((name) => name.includes('TCPSocket')).length,
    heapBytes: heapUsed,
    externalBytes: external,
    rssBytes: rss,
  };
}
