import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { v8Options } from './memory-settings.ts';

const run = promisify(execFile);
const urlOf = (path: string) => pathToFileURL(join(import.meta.dirname, '..', '..', path)).href;

/** Objects that live long enough to be old and then are garbage, beside others that stay in use. */
const work = `
  import { getHeapStatistics } from 'node:v8';
  const { limitHeapGrowth } = await import(${JSON.stringify(urlOf('spawning/processes/memory-settings.ts'))});
  limitHeapGrowth();
  const kept = Array.from({ length: 1_200_000 }, (_, index) => ({ index, text: 'kept ' + index }));
  globalThis.gc();
  const inUse = getHeapStatistics().used_heap_size;
  const lost = [];
  let most = 0;
  for (let index = 0; index < 6_000_000; index += 1) {
    lost[index % 100_000] = { index, text: 'lost ' + index };
    if (index % 10_000 === 0) most = Math.max(most, getHeapStatistics().used_heap_size);
  }
  console.log(JSON.stringify({ growth: most / inUse, kept: kept.length }));
`;

test('with the settings of the hub, its heap grows by little more than a third of what is in use', async () => {
  const settings = v8Options;
  const { stdout } = await run(process.execPath, [
    ...settings,
    '--expose-gc',
    '--input-type=module',
    '--eval',
    work,
  ]);
  // With twice as much room it is 1.9.
  expect((JSON.parse(stdout) as { growth: number }).growth).toBeLessThan(1.75);
});
