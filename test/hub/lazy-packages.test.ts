import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const run = promisify(execFile);
const sources = join(import.meta.dirname, '..', '..', 'src');
const urlOf = (module: string) => pathToFileURL(join(sources, module)).href;
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
  '@kubernetes/client-node',
  '@redis/client',
  'dockerode',
  'image-size',
  'jose',
  'otplib',
  'parse5',
  'pg',
  'pino-pretty',
  'qrcode',
];

/** The packages that a module of the program loads. */
async function packagesOf(module: string): Promise<ReadonlySet<string | undefined>> {
  const { stdout } = await run(process.execPath, [
    '--import',
    `data:text/javascript,${encodeURIComponent(trace)}`,
    '--input-type=module',
    '--eval',
    `await import(${JSON.stringify(urlOf(module))})`,
  ]);
  return new Set(
    [...stdout.matchAll(/\/node_modules\/((?:@[^/\s]+\/)?[^/\s]+)/g)].map(([, name]) => name),
  );
}

test('packages that only some hubs need are not loaded with the program', async () => {
  const loaded = await packagesOf('composition/hub.ts');
  expect(loaded).toContain('koa');
  expect(onDemand.filter((name) => loaded.has(name))).toEqual([]);
});

test('packages that only a running hub needs are not loaded with the command line', async () => {
  const loaded = await packagesOf('composition/run.ts');
  expect(loaded).toContain('commander');
  for (const name of ['koa', 'kysely', 'http-proxy-3', 'undici'])
    expect(loaded).not.toContain(name);
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
    `for (const url of ${JSON.stringify(['composition/run.ts', 'composition/hub.ts'].map(urlOf))}) await import(url)`,
  ]);
  expect(stdout).toBe('');
});
