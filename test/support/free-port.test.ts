import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { freePort } from './free-port.ts';

// So many of so few that calls which knew nothing of one another would take one port twice.
const range = { from: 11_000, to: 11_100 };
const count = 30;

test('a free port is given out once, in this process and in all others, before it is listened on', async () => {
  const taken: number[] = [];
  for (let drawn = 0; drawn < count; drawn += 1) taken.push(await freePort(range));
  const other = spawn(process.execPath, [
    '--input-type=module',
    '--eval',
    `import { freePort } from ${JSON.stringify(import.meta.resolve('./free-port.ts'))};
     for (let drawn = 0; drawn < ${count}; drawn += 1)
       console.log(await freePort(${JSON.stringify(range)}));`,
  ]);
  const lines = (await text(other.stdout)).trim().split('\n');
  taken.push(...lines.map(Number));
  expect(new Set(taken).size).toBe(2 * count);
});
