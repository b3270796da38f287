import { setImmediate } from 'node:timers/promises';

const partLength = 500;

/** Awaited for each item of a long list, it lets the process do other work between the parts of the list. */
export async function letOthers(index: number): Promise<void> {
  if (index % partLength === partLength - 1) await setImmediate();
}
