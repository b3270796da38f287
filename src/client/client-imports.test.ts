import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const run = promisify(execFile);
const client = pathToFileURL(join(import.meta.dirname, 'client.ts')).href;
const trace = `
  import { registerHooks } from 'node:module';
  registerHooks({
    load(url, context, nextLoad) {
      if (url.startsWith('file:')) console.log(url);
      return nextLoad(url, context);
    },
  });
`;

test('importing the client loads nothing of the server and no framework', async () => {
  const { stdout } = await run(process.execPath, [
    '--import',
    `data:text/javascript,${encodeURIComponent(trace)}`,
    '--input-type=module',
    '--eval',
    `await import(${JSON.stringify(client)})`,
  ]);
  const loaded = stdout.trim().split('\n');
  expect(loaded).toContain(client);

  const packages = loaded.filter((url) => url.includes('/node_modules/'));
  expect(packages.length).toBeGreaterThan(0);
  expect(packages.filter((url) => !url.includes('/node_modules/lru-cache/'))).toEqual([]);

  const folders = loaded
    .filter((url) => !url.includes('/node_modules/'))
    .map(
      (url) =>
        url
          .slice(url.lastIndexOf('/src/') + '/src/'.length)
          .replace('platform/', '')
          .split('/')[0],
    );
  expect([...new Set(folders)].sort()).toEqual([
    'client',
    'concurrency',
    'config',
    'crypto',
    'errors.ts',
    'http',
    'protocol',
  ]);
});
