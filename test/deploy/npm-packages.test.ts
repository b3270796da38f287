import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { singleuserFile } from '../../scripts/program.ts';
import { documentedBlock, documentedBlocks } from '../support/documented-blocks.ts';
import { FakeBrowser } from '../support/fake-browser.ts';
import { freePort } from '../support/free-port.ts';
import { testPassword } from '../support/password-hub.ts';
import { pathOf, requires } from '../support/requires.ts';
import { projectDirectory } from '../support/services.ts';
import { endProcessesIn, submitForm, until } from '../support/test-hub.ts';

const run = promisify(execFile);

/** The packages for npm as their readers meet them: by the README in each, in folders outside the project. */
describe.skipIf(!requires('script'))('the packages for npm', () => {
  let directory: string;
  let folder: string;
  let url: string;
  let environment: NodeJS.ProcessEnv;
  /** The packed files, by the names of their packages. */
  const tarballs = new Map<string, string>();
  const ending: (() => Promise<void>)[] = [];

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'hub-npm-packages-'));
    environment = environmentOfShell();
    await run(process.execPath, [join(projectDirectory, 'scripts', 'build.ts'), directory]);
    for (const name of ['dist', 'dist-client']) {
      const packing = `npm pack ./${name} --json`;
      const [packed] = JSON.parse(await shell(packing, directory)) as [Record<string, string>];
      tarballs.set(packed['name'] ?? '', join(directory, packed['filename'] ?? ''));
    }
    folder = join(directory, 'hub');
    await mkdir(folder);
    url = `http://127.0.0.1:${await freePort()}/`;
  });
  afterAll(async () => {
    for (const end of ending.splice(0)) await end();
    await endProcessesIn(directory);
    await rm(directory, { recursive: true, force: true });
  });

  /** Runs a command as it is printed, but takes a package from its file and not from where it is published. */
  async function shell(command: string, cwd: string, env = environment): Promise<string> {
    const words = command.split(' ').map((word) => tarballs.get(word) ?? word);
    const { stdout } = await run('sh', ['-c', words.join(' ')], { cwd, env });
    return stdout;
  }

  /** Answers at a terminal what `hub init` asks. */
  async function initialize(command: string): Promise<string> {
    const terminal = spawn(pathOf('script'), ['-qec', command, '/dev/null'], {
      cwd: folder,
      env: environment,
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
      env: environment,
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
      if (command !== 'npx hub init') await shell(command, folder);
      // What it says at its end is the command that comes next.
      else expect(await initialize(command)).toContain(`Next: ${commands.at(-1)}`);
    }
    const installed = join(folder, 'node_modules/@hub-gateway/hub');
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
    expect((await browser.request(`${url}hub/home`)).status).toBe(200);
  });

  describe.skipIf(!requires('node-20'))('with Node.js 20', () => {
    test('each program says which Node.js it needs, and ends', async () => {
      const old = join(directory, 'old-node');
      await mkdir(old);
      await symlink(pathOf('node-20'), join(old, 'node'));
      const env = { ...environment, PATH: [old, environment['PATH']].join(delimiter) };
      const bin = 'node_modules/.bin';
      const file = `node_modules/@hub-gateway/hub/${singleuserFile}`;
      const needed = /Node\.js (\d[\d.]+) or newer/.exec(documentedText('hub.md'))?.[1];
      for (const [program, command] of [
        ['hub', `${bin}/hub start`],
        ['hub', `${bin}/hub --version`],
        ['hub-singleuser', `${bin}/hub-singleuser --help`],
        ['hub-singleuser', `node ${file} --help`],
      ] as const) {
        const failure = (await shell(command, folder, env).catch((error) => error)) as {
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
      const app = join(directory, 'app');
      await mkdir(app);
      await writeFile(join(app, 'package.json'), '{ "private": true }');
      await shell('npm install @hub-gateway/client', app);
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
      await shell('npx hub reload', folder);

      const page = `${url}services/greeter/`;
      const browser = new FakeBrowser();
      await until(async () => (await browser.open(page)).status !== 503, 'the app is ready');
      const form = await browser.open(page);
      expect(new URL(form.url).pathname).toBe('/hub/login');
      let answer = await submitForm(browser, form, { username: 'ada', password: testPassword });
      answer = await browser.open(new URL(answer.headers.location ?? '', url).href);
      if (answer.url.includes('/oauth2/authorize')) {
        const allowed = await submitForm(browser, answer, { decision: 'allow' });
        answer = await browser.open(new URL(allowed.headers.location ?? '', url).href);
      }
      expect([answer.url, answer.status, answer.body]).toEqual([page, 200, 'Hello, ada.\n']);

      const token = (await shell('npx hub token ada', folder)).trim();
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

/** As of somebody who is in no project: what `npm run` and the tests say of this one is left out. */
function environmentOfShell(): NodeJS.ProcessEnv {
  const own = Object.entries(process.env).filter(
    ([name]) => !/^npm_(?!config_)|^npm_config_local_prefix$|^NODE_(?!EXTRA_CA_CERTS)/.test(name),
  );
  return {
    ...Object.fromEntries(own),
    PATH: [dirname(process.execPath), process.env['PATH']].join(delimiter),
    npm_config_prefer_offline: 'true',
    npm_config_fetch_retries: '1',
  };
}
