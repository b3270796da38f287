import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, statSync } from 'node:fs';
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { basename, delimiter, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readJson, singleuserFile } from '../../scripts/program.ts';
import { sizeOf } from '../../scripts/release-checks.ts';
import { documentedBlock, documentedBlocks } from '../support/documented-blocks.ts';
import { FakeBrowser } from '../support/fake-browser.ts';
import { freePort } from '../support/free-port.ts';
import { buildNpmPackages, type NpmPackages } from '../support/npm-packages.ts';
import { testPassword } from '../support/password-hub.ts';
import {
  createPluginFolder,
  type PluginFolder,
  type PluginFolderConfig,
} from '../support/plugin-folder.ts';
import { pathOf, requires } from '../support/requires.ts';
import { projectDirectory } from '../support/services.ts';
import { submitForm, until } from '../support/test-hub.ts';

/** What the hub itself would install; other releases would be another test. */
const { dependencies, devDependencies } = readJson(
  join(projectDirectory, 'package.json'),
) as Record<'dependencies' | 'devDependencies', Readonly<Record<string, string>>>;

/** The packages for npm as their readers meet them: by the README in each, in folders outside the project. */
describe.skipIf(!requires('script'))('the packages for npm', () => {
  let packages: NpmPackages;
  let folder: string;
  let url: string;
  const ending: (() => Promise<void>)[] = [];

  beforeAll(async () => {
    packages = await buildNpmPackages();
    folder = join(packages.directory, 'hub');
    await mkdir(folder);
    url = `http://127.0.0.1:${await freePort()}/`;
  });
  afterAll(async () => {
    for (const end of ending.splice(0)) await end();
    await packages[Symbol.asyncDispose]();
  });

  /** Answers at a terminal what `hub init` asks. */
  async function initialize(command: string): Promise<string> {
    const terminal = spawn(pathOf('script'), ['-qec', command, '/dev/null'], {
      cwd: folder,
      env: packages.environment,
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    let shown = '';
    terminal.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      shown += chunk;
    });
    const ended = once(terminal, 'close');
    const answers = {
      'Name of the hub': '',
      'Where do people find it': url,
      'Who logs people in': '',
      'What does each user get': 'none',
    };
    for (const [question, answer] of Object.entries(answers)) {
      await until(() => shown.includes(question), `it asks: ${question}`);
      terminal.stdin.write(`${answer}\n`);
    }
    expect(await ended, shown).toEqual([0, null]);
    return shown;
  }

  /** Starts a hub as its reader does, until the tests are at their end or it is told to stop; returns what it prints. */
  function start(command: string): () => string {
    const hub = spawn('sh', ['-c', command], {
      cwd: folder,
      env: packages.environment,
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    let printed = '';
    for (const output of [hub.stdout, hub.stderr]) {
      output.setEncoding('utf8').on('data', (chunk: string) => {
        printed += chunk;
      });
    }
    const exited = once(hub, 'exit');
    ending.push(async () => {
      // With what npm has put around it.
      if (hub.pid !== undefined && hub.exitCode === null) process.kill(-hub.pid, 'SIGTERM');
      await exited;
    });
    return () => printed;
  }

  const configure = async (change: (text: string) => string) => {
    const file = join(folder, 'hub.config.json');
    await writeFile(file, change(await readFile(file, 'utf8')));
  };

  test('the commands of the README lead from an empty folder to the first login', async () => {
    const commands = documentedBlocks('deploy/npm/hub.md', 'sh')
      .flatMap((block) => block.split('\n'))
      .map((line) => line.replace(/#.*/, '').trim())
      .filter((line) => line !== '');
    expect(commands.at(-1)).toBe('npx hub start');
    for (const command of commands.slice(0, -1)) {
      if (command !== 'npx hub init') await packages.shell(command, folder);
      // What it says at its end is the command that comes next.
      else expect(await initialize(command)).toContain(`Next: ${commands.at(-1)}`);
    }
    const installed = join(folder, 'node_modules/@hub-gateway/hub');
    expect(sizeOf(join(folder, 'node_modules'))).toBeLessThanOrEqual(110e6);
    expect(statSync(join(installed, singleuserFile)).size).toBeLessThanOrEqual(1.5e6);
    const readme = await readFile(join(installed, 'README.md'), 'utf8');
    expect(readme).toBe(await readFile(join(projectDirectory, 'deploy/npm/hub.md'), 'utf8'));
    for (const [, file = ''] of readme.matchAll(/\]\(([\w./-]+)\)/g)) {
      expect(await readFile(join(installed, file), 'utf8'), file).not.toBe('');
    }
    const [, schema = ''] = /"\$schema": "([^"]+)"/.exec(readme) ?? [];
    expect(await readFile(join(folder, 'hub.config.json'), 'utf8')).toContain(
      `"$schema": "${schema}"`,
    );
    expect(JSON.parse(await readFile(join(folder, schema), 'utf8'))).toHaveProperty('properties');

    // The second port is not asked for; another program may have it here.
    const internal = await freePort();
    await configure((text) => text.replace('127.0.0.1:8080', `127.0.0.1:${internal}`));
    const printed = start('npx hub start');
    const link = () => /http\S+\/hub\/set-up\?secret=\S+/.exec(printed())?.[0];
    await until(() => link() !== undefined, 'the link that makes the first administrator');
    const browser = new FakeBrowser();
    const typed = { name: 'ada', new_password: testPassword, repeat_password: testPassword };
    await submitForm(browser, await browser.request(link() ?? ''), typed);
    const home = await browser.request(`${url}hub/home`);
    const [, stylesheet = ''] = /href="([^"]*site[^"]*\.css)"/.exec(home.body) ?? [];
    expect([home.status, (await fetch(new URL(stylesheet, url))).status]).toEqual([200, 200]);

    expect(await packages.shell('npx hub --version', folder)).toMatch(/^\d+\.\d+\.\d+$/m);
    const guard = await packages.shell('npx hub-singleuser --help', folder);
    expect(guard).toContain('in front of any web app');
  });

  test('the plugins of the how-tos run beside a configuration elsewhere', async () => {
    await using site = await createPluginFolder(join(folder, 'node_modules/.bin/hub'));
    const authenticator = ['plugins/badges.ts', 'hub.config.json', 'badges.json'];
    await site.writeBlocks('write-an-authenticator.md', [
      ...authenticator,
      'plugins/badges.test.ts',
    ]);
    const logins = readConfig(site);
    await site.writeBlocks('write-a-spawner.md', [
      'plugins/nice.ts',
      'hub.config.json',
      'plugins/nice.test.ts',
    ]);
    const servers = readConfig(site);
    await site.configure({ ...servers, ...logins });
    expect(await site.hub('check')).toMatchObject({ code: 0, stderr: '' });
    const tests = await site.hub('test-plugins');
    expect(tests.code, tests.stdout + tests.stderr).toBe(0);

    await site.write(
      'plugins/broken.js',
      "export default {\n  kind: 'authenticator'\n  name: 'x',\n};\n",
    );
    await site.configure({ Hub: { authenticator_class: 'broken' } });
    const { problems } = await site.hub('check');
    expect(problems.join('\n')).toContain('plugins/broken.js:3 cannot be loaded');

    await site.write('plugins/plain.js', plainPlugin);
    await site.configure({ Hub: { authenticator_class: 'plain' } });
    expect((await site.hub('check')).code).toBe(0);

    await using _hub = await site.start({ ...servers, ...logins });
    const browser = new FakeBrowser();
    const form = await browser.request(`${site.url}hub/login`);
    expect((await submitForm(browser, form, { username: '1001', pin: '2468' })).status).toBe(302);
    const { status } = await site.api('/users/ada/server', { method: 'POST' });
    expect([201, 202]).toContain(status);
    const files = async () => (await browser.open(`${site.url}user/ada/`)).body;
    await until(async () => (await files()).includes('Directory listing'), 'the server answers');
    await site.api('/users/ada/server', { method: 'DELETE' });
  });

  test('the service of the how-to lets users in with each of its frameworks', async () => {
    await using site = await createPluginFolder(join(folder, 'node_modules/.bin/hub'));
    const files = ['hub.config.json', 'http.js', 'koa.js', 'express.js'];
    await site.writeBlocks('write-a-service.md', files);
    const page = readFileSync(join(projectDirectory, 'docs/how-to/write-a-service.md'), 'utf8');
    expect(page).toContain(basename(packages.tarball('@hub-gateway/client')));
    await site.write('package.json', '{ "private": true, "type": "module" }');
    await packages.shell('npm install @hub-gateway/client', site.directory);
    expect(sizeOf(site.path('node_modules'))).toBeLessThanOrEqual(1e6);
    await packages.shell(
      `npm install koa@${dependencies['koa']} express@${devDependencies['express']}`,
      site.directory,
    );
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
      const address = `${site.url}services/greeter/`;
      const { answer } = await openGuarded(address, { username: 'ada' });
      expect(answer.body, file).toMatch(/^Hello, ada\.$/m);
    }
  });

  // The declarations must lead a compiler to every type behind them, and find what is missing.
  test('plugins and services are compiled against the packages', async () => {
    const types = ['node', 'koa'].map(
      (name) => `@types/${name}@${devDependencies[`@types/${name}`]}`,
    );
    await packages.shell(`npm install @hub-gateway/client ${types.join(' ')}`, folder);
    await writeFile(join(folder, 'service.ts'), typedConsumer);
    const plugins = ['write-an-authenticator.md', 'write-a-spawner.md'].flatMap((page) =>
      documentedBlocks(`docs/how-to/${page}`, 'ts').flatMap((block) => {
        const [, name, code = ''] = /^\/\/ plugins\/(\S+)\n([\s\S]*)$/.exec(block) ?? [];
        return name === undefined ? [] : [{ name, code }];
      }),
    );
    expect(plugins.length).toBeGreaterThan(1);
    for (const { name, code } of plugins) await writeFile(join(folder, name), code);
    const compiler = join(projectDirectory, 'node_modules', 'typescript', 'bin', 'tsc');
    const flags =
      '--noEmit --strict --allowImportingTsExtensions --module nodenext --target es2024 --types node';
    const files = ['service.ts', ...plugins.map(({ name }) => name)].join(' ');
    // What it finds it prints, and fails.
    expect(await packages.shell(`node ${compiler} ${flags} ${files}`, folder)).toBe('');
  });

  describe.skipIf(!requires('node-20'))('with Node.js 20', () => {
    test('each program says which Node.js it needs, and ends', async () => {
      const old = join(packages.directory, 'old-node');
      await mkdir(old);
      await symlink(pathOf('node-20'), join(old, 'node'));
      const env = {
        ...packages.environment,
        PATH: [old, packages.environment['PATH']].join(delimiter),
      };
      const bin = 'node_modules/.bin';
      const file = `node_modules/@hub-gateway/hub/${singleuserFile}`;
      const needed = /Node\.js (\d[\d.]+) or newer/.exec(documentedText('hub.md'))?.[1];
      for (const [program, command] of [
        ['hub', `${bin}/hub start`],
        ['hub', `${bin}/hub --version`],
        ['hub-singleuser', `${bin}/hub-singleuser --help`],
        ['hub-singleuser', `node ${file} --help`],
      ] as const) {
        const failure = (await packages.shell(command, folder, env).catch((error) => error)) as {
          code: number;
          stdout: string;
          stderr: string;
        };
        expect([failure.code, failure.stdout]).toEqual([1, '']);
        expect(failure.stderr).toMatch(
          new RegExp(
            `^${program} needs Node\\.js ${needed} or newer, and this is 20\\.\\S+ \\(.+\\)\\.\n$`,
          ),
        );
      }
    });

    test('an app protected as the README of the client library shows lets users and their tokens in', async () => {
      const app = join(packages.directory, 'app');
      await mkdir(app);
      await writeFile(join(app, 'package.json'), '{ "private": true }');
      await packages.shell('npm install @hub-gateway/client', app);
      expect(await readFile(join(app, 'node_modules/@hub-gateway/client/README.md'), 'utf8')).toBe(
        documentedText('client.md'),
      );
      await writeFile(join(app, 'app.mjs'), documentedBlock('deploy/npm/client.md', 'js'));
      const service = {
        name: 'greeter',
        url: `http://127.0.0.1:${await freePort()}`,
        command: [pathOf('node-20'), 'app.mjs'],
        cwd: app,
      };
      await configure((text) =>
        text.replace('"services": []', `"services": [${JSON.stringify(service)}]`),
      );
      await packages.shell('npx hub reload', folder);

      const page = `${url}services/greeter/`;
      const { answer, form } = await openGuarded(page, { username: 'ada', password: testPassword });
      expect(new URL(form.url).pathname).toBe('/hub/login');
      expect([answer.url, answer.status, answer.body]).toEqual([page, 200, 'Hello, ada.\n']);

      const token = (await packages.shell('npx hub token ada', folder)).trim();
      const ask = async (authorization: string) => {
        const asked = await fetch(page, { headers: { authorization }, redirect: 'manual' });
        return [asked.status, await asked.text()];
      };
      expect(await ask(`Bearer ${token}`)).toEqual([200, 'Hello, ada.\n']);
      const [status, body] = await ask('Bearer not-a-token-of-anybody');
      expect(status).not.toBe(200);
      expect(body).not.toContain('Hello');
    });
  });
});

function documentedText(page: string): string {
  return readFileSync(join(projectDirectory, 'deploy/npm', page), 'utf8');
}

/** Opens an app as somebody who has to log in for it, and allows it to know who that is. */
async function openGuarded(url: string, login: Readonly<Record<string, string>>) {
  const browser = new FakeBrowser();
  await until(async () => (await browser.open(url)).status !== 503, 'the app is ready');
  const form = await browser.open(url);
  let answer = await submitForm(browser, form, login);
  answer = await browser.open(new URL(answer.headers.location ?? '', url).href);
  if (answer.url.includes('/oauth2/authorize')) {
    const allowed = await submitForm(browser, answer, { decision: 'allow' });
    answer = await browser.open(new URL(allowed.headers.location ?? '', url).href);
  }
  return { answer, form };
}

function readConfig(site: PluginFolder): PluginFolderConfig {
  return JSON.parse(readFileSync(site.path('hub.config.json'), 'utf8').replace(/^\/\/.*/, ''));
}

/** Imports what a plugin may, in JavaScript. */
const plainPlugin = `import { HubAuth } from '@hub-gateway/hub/client';
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

const typedConsumer = `import { HubOAuth, koaMiddleware, type UserModel } from '@hub-gateway/client';
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
`;
