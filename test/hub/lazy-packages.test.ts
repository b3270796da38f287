import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const run = promisify(execFile);
const program = pathToFileURL(join(import.meta.dirname, '..', '..', 'src', 'run.ts')).href;
const trace = `
  import { registerHooks } from 'node:module';
  registerHooks({
    load(url, context, nextLoad) {
      if (url.startsWith('file:')) console.log(url);
      return nextLoad(url, context);
    },
  });
`;

/** What only some configurations and some requests need. */
const onDemand = [
  '@keyv/redis',
  '@redis/client',
  'dockerode',
  'jose',
  'otplib',
  'pg',
  'pino-pretty',
  'qrcode',
];

test('packages that only some hubs need are not loaded with the program', async () => {
  const { stdout } = await run(process.execPath, [
    '--import',
    `data:text/javascript,${encodeURIComponent(trace)}`,
    '--input-type=module',
    '--eval',
    `await import(${JSON.stringify(program)})`,
  ]);
  const loaded = new Set(
    [...stdout.matchAll(/\/node_modules\/((?:@[^/\s]+\/)?[^/\s]+)/g)].map(([, name]) => name),
  );
  expect(loaded).toContain('koa');
  expect(onDemand.filter((name) => loaded.has(name))).toEqual([]);
});

test('the data of languages is not loaded with the program', async () => {
  // Five megabytes for as long as the hub runs; only the constructors need it.
  const watched = `
    for (const name of ['Collator', 'DateTimeFormat', 'NumberFormat', 'RelativeTimeFormat', 'Segmenter']) {
      Intl[name] = new Proxy(Intl[name], {
        construct(target, given) {
          console.log(name);
          return Reflect.construct(target, given);
        },
      });
    }
  `;
  const { stdout } = await run(process.execPath, [
    '--import',
    `data:text/javascript,${encodeURIComponent(watched)}`,
    '--input-type=module',
    '--eval',
    `await import(${JSON.stringify(program)})`,
  ]);
  expect(stdout).toBe('');
});
