/**
 * Tries what `npm run build` made as somebody who installs it: packs `dist/`, installs the package
 * into an empty folder, starts the hub, runs the plugins and the service of the how-tos beside a
 * configuration elsewhere, and compiles them against the package. Run with `npm run test:dist`.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { FakeBrowser } from '../test/support/fake-browser.ts';
import { freePort } from '../test/support/free-port.ts';
import {
  createPluginFolder,
  type PluginFolder,
  type PluginFolderConfig,
} from '../test/support/plugin-folder.ts';
import { submitForm, until } from '../test/support/test-hub.ts';
import { singleuserFile } from './program.ts';
import { sizeOf } from './release-checks.ts';

const root = join(import.meta.dirname, '..');
const folder = mkdtempSync(join(tmpdir(), 'hub-package-'));
/** What the hub itself would install; other releases would be another test. */
const { dependencies, devDependencies } = JSON.parse(
  readFileSync(join(root, 'package.json'), 'utf8'),
) as Record<'dependencies' | 'devDependencies', Readonly<Record<string, string>>>;

try {
  const client = pack('dist-client');
  const program = install(pack('dist'), client);
  await tryProgram(program);
  await tryPlugins(program);
  await tryService(program, client);
  compileConsumers();
  console.log(
    'The package installs, starts, runs plugins and services, and can be compiled against.',
  );
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function pack(built: string): string {
  const args = ['pack', join(root, built), '--pack-destination', folder, '--json'];
  const [packed] = JSON.parse(npm(args, folder)) as [{ filename: string }];
  return join(folder, packed.filename);
}

/** Installs the package into an empty folder, with what its consumers need besides; returns the program. */
function install(tarball: string, client: string): string {
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true, type: 'module' }));
  const types = ['node', 'koa'].map(
    (name) => `@types/${name}@${devDependencies[`@types/${name}`]}`,
  );
  npm(['install', '--no-audit', '--no-fund', '--prefer-offline', tarball], folder);
  // Of the hub with all that it needs.
  assert.ok(sizeOf(join(folder, 'node_modules')) <= 110e6);
  assert.ok(sizeOf(join(root, 'dist-client')) <= 1e6);
  npm(['install', '--no-audit', '--no-fund', '--prefer-offline', client, ...types], folder);
  return join(folder, 'node_modules', '.bin', 'hub');
}

function npm(args: readonly string[], cwd: string): string {
  return execFileSync('npm', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
}

async function tryProgram(program: string): Promise<void> {
  await using site = await createPluginFolder(program);
  await site.configure({});
  assert.match((await site.hub('check')).stdout, /is fine/);
  assert.match((await site.hub('--version')).stdout, /^\d+\.\d+\.\d+$/m);
  const guard = execFileSync(`${program}-singleuser`, ['--help'], { encoding: 'utf8' });
  assert.match(guard, /in front of any web app/);
  assert.ok(statSync(join(root, 'dist', singleuserFile)).size <= 1.5e6);

  const hub = await site.start({});
  const health = await fetch(new URL('hub/health', site.url));
  assert.deepEqual(await health.json(), { status: 'ok' });
  const login = await fetch(new URL('hub/login', site.url));
  const [, stylesheet = ''] = /href="([^"]*site[^"]*\.css)"/.exec(await login.text()) ?? [];
  assert.equal((await fetch(new URL(stylesheet, site.url))).status, 200);
  hub.signal('SIGTERM');
  assert.equal(await hub.exited, 0);
}

/** The plugins of the how-tos, beside a configuration in a folder that has no packages. */
async function tryPlugins(program: string): Promise<void> {
  await using site = await createPluginFolder(program);
  const authenticator = ['plugins/badges.ts', 'hub.config.json', 'badges.json'];
  await site.writeBlocks('write-an-authenticator.md', [...authenticator, 'plugins/badges.test.ts']);
  const logins = readConfig(site);
  await site.writeBlocks('write-a-spawner.md', [
    'plugins/nice.ts',
    'hub.config.json',
    'plugins/nice.test.ts',
  ]);
  const servers = readConfig(site);
  await site.configure({ ...servers, ...logins });
  const check = await site.hub('check');
  assert.deepEqual([check.code, check.stderr], [0, '']);
  const tests = await site.hub('test-plugins');
  assert.equal(tests.code, 0, tests.stdout + tests.stderr);

  await site.write(
    'plugins/broken.js',
    "export default {\n  kind: 'authenticator'\n  name: 'x',\n};\n",
  );
  await site.configure({ Hub: { authenticator_class: 'broken' } });
  const { problems } = await site.hub('check');
  assert.match(problems.join('\n'), /plugins\/broken\.js:3 cannot be loaded/);

  const script = `import { HubAuth } from '@hub-gateway/hub/client';
import { z } from 'zod';
const fields = [{ name: 'username', label: HubAuth.name, type: 'text', autocomplete: '' }];
export default {
  kind: 'authenticator',
  name: 'plain',
  section: 'PlainAuthenticator',
  optionsSchema: z.strictObject({}),
  create: () => ({ login: { kind: 'form', label: 'Plain', fields }, async authenticate() {} }),
};
`;
  await site.write('plugins/plain.js', script);
  await site.configure({ Hub: { authenticator_class: 'plain' } });
  assert.equal((await site.hub('check')).code, 0);

  await using _hub = await site.start({ ...servers, ...logins });
  const browser = new FakeBrowser();
  const form = await browser.request(`${site.url}hub/login`);
  assert.equal((await submitForm(browser, form, { username: '1001', pin: '2468' })).status, 302);
  const { status } = await site.api('/users/ada/server', { method: 'POST' });
  assert.ok([201, 202].includes(status), `the start of a server is answered with ${status}`);
  const files = async () => (await browser.open(`${site.url}user/ada/`)).body;
  await until(async () => (await files()).includes('Directory listing'), 'the server answers');
  await site.api('/users/ada/server', { method: 'DELETE' });
}

function readConfig(site: PluginFolder): PluginFolderConfig {
  return JSON.parse(readFileSync(site.path('hub.config.json'), 'utf8').replace(/^\/\/.*/, ''));
}

/** The service of the how-to, installed as the page says, with each of its three frameworks. */
async function tryService(program: string, tarball: string): Promise<void> {
  await using site = await createPluginFolder(program);
  const files = ['hub.config.json', 'http.js', 'koa.js', 'express.js'];
  await site.writeBlocks('write-a-service.md', files);
  const page = readFileSync(join(root, 'docs/how-to/write-a-service.md'), 'utf8');
  assert.ok(page.includes(basename(tarball)), `the page does not name ${basename(tarball)}`);
  npm(['init', '-y'], site.directory);
  npm(['pkg', 'set', 'type=module'], site.directory);
  const frameworks = [`koa@${dependencies['koa']}`, `express@${devDependencies['express']}`];
  npm(['install', '--no-audit', '--no-fund', '--prefer-offline', tarball], site.directory);
  assert.ok(sizeOf(site.path('node_modules')) <= 1e6, 'the client library is small');
  npm(['install', '--no-audit', '--no-fund', '--prefer-offline', ...frameworks], site.directory);

  const { Hub, ...shown } = readConfig(site);
  const [service] = (Hub?.['services'] ?? []) as object[];
  for (const file of files.slice(1)) {
    await site.write('greeter.js', readFileSync(site.path(file), 'utf8'));
    await using _hub = await site.start({
      ...shown,
      Authenticator: { allow_all: true },
      Hub: {
        ...Hub,
        authenticator_class: 'dummy',
        services: [{ ...service, url: `http://127.0.0.1:${await freePort()}` }],
      },
    });
    const browser = new FakeBrowser();
    const form = await browser.request(`${site.url}hub/login`);
    await submitForm(browser, form, { username: 'ada' });
    const url = `${site.url}services/greeter/`;
    await until(async () => (await browser.open(url)).status !== 503, `${file} is ready`);
    let answer = await browser.open(url);
    if (answer.url.includes('/oauth2/authorize')) {
      const allowed = await submitForm(browser, answer, { decision: 'allow' });
      answer = await browser.open(new URL(allowed.headers.location ?? '', url).href);
    }
    assert.match(answer.body, /^Hello, ada\.$/m, file);
  }
}

/** The declarations must lead a compiler to every type behind them, and find what is missing. */
function compileConsumers(): void {
  mkdirSync(join(folder, 'consumer'));
  const file = join(folder, 'consumer', 'service.ts');
  writeFileSync(
    file,
    `import { HubOAuth, koaMiddleware, type UserModel } from '@hub-gateway/client';
import Koa from 'koa';
import type { AuthenticatorPlugin, FormAuthenticator } from '@hub-gateway/hub/plugin';
const hubAuth = new HubOAuth({ api_token: 'a-secret-token', service_name: 'x' });
new Koa().use(koaMiddleware(hubAuth));
export const prefix: string = hubAuth.service_prefix;
export const name = (user: UserModel): string => user.name;
// @ts-expect-error A plugin has a name that is text.
export const wrong: AuthenticatorPlugin['name'] = 1;
// @ts-expect-error There is no such option.
export const other = new HubOAuth({ no_such_option: 1 });
// @ts-expect-error A login by form checks what was filled in.
export const form: FormAuthenticator = { login: { kind: 'form', label: 'Form', fields: [] } };
`,
  );
  const plugins = pluginsOfHowTos();
  const compiler = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  const flags =
    '--noEmit --strict --allowImportingTsExtensions --module nodenext --target es2024 --types node';
  execFileSync(process.execPath, [compiler, ...flags.split(' '), file, ...plugins], {
    cwd: folder,
    stdio: 'inherit',
  });
}

function pluginsOfHowTos(): string[] {
  return ['write-an-authenticator.md', 'write-a-spawner.md'].flatMap((page) => {
    const text = readFileSync(join(root, 'docs/how-to', page), 'utf8');
    return [...text.matchAll(/^```ts\n\/\/ plugins\/(\S+)\n([\s\S]*?)^```$/gm)].map(
      ([, name = '', code = '']) => {
        const file = join(folder, 'consumer', name);
        writeFileSync(file, code);
        return file;
      },
    );
  });
}
