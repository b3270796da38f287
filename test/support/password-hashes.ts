import { Worker } from 'node:worker_threads';
import { vi } from 'vitest';
import type { HashJob } from '../../src/identity/authentication/hash-thread.ts';

/** What the hub of this process works out of passwords during some work: algorithm and cost of each hash. */
export async function hashesDuring(work: () => Promise<unknown>): Promise<object[]> {
  const sent = vi.spyOn(Worker.prototype, 'postMessage');
  try {
    await work();
    return sent.mock.calls
      .map(([message]) => message as Partial<HashJob>)
      .filter(({ algorithm }) => algorithm !== undefined)
      .map(({ password: _, salt: __, ...cost }) => cost);
  } finally {
    sent.mockRestore();
  }
}
