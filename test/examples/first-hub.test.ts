import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { FakeBrowser } from '../support/fake-browser.ts';
import { freePort } from '../support/free-port.ts';
import { type HubProcess, startHubProcess } from '../support/hub-process.ts';
import { requires } from '../support/requires.ts';
import { projectDirectory } from '../support/services.ts';
import { submitForm, submitLogin, until } from '../support/test-hub.ts';

const ports = ['8000', '8080', '9000', '10101', '10102'];
const adasPassword = 'purple elephants dance';
const gracesPassword = 'seven quiet mountains';

/** A folder that is a checkout for its reader, and the tutorial with ports that are free. */
async function createCheckout() {
  const directory = await mkdtemp(join(tmpdir(), 'hub-tutorial-'));
  for (const name of ['src', 'plugins', 'examples', 'bin', 'node_modules', 'package.json'])
    await symlink(join(projectDirectory, name), join(directory, name));
  const free = new Map<string, string>();
  for (const port of ports) free.set(port, String(await freePort()));
  const read = (path: string) =>
    readFileSync(join(projectDirectory, path), 'utf8').replaceAll(
      /\b(?:8000|8080|9000|10101|10102)\b/g,
      (port) => free.get(port) ?? port,
    );
  await writeFile(join(directory, 'hub.config.example.json'), read('hub.config.example.json'));
  const text = read('docs/tutorial/first-hub.md');
  const sections = new Map(
    text.split(/^## /m).map((section) => [section.split('\n', 1)[0] ?? '', section]),
  );
  const url = `http://127.0.0.1:${free.get('8000')}/`;
  const running: AsyncDisposable[] = [];
  let hub: HubProcess | undefined;

  function block(heading: string, language: 'sh' | 'jsonc', index: number): string {
    const fence = new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, 'gm');
    const found = [...(sections.get(heading) ?? '').matchAll(fence)][index]?.[1];
    if (found === undefined)
      throw new Error(`the tutorial has no ${language} ${index} in ${heading}`);
    return found;
  }

  return {
    url,
    text,
    async configure(heading: string): Promise<void> {
      // The addresses that the tutorial leaves at their defaults, which may be taken here.
      const addresses = `"Hub": { "hub_bind_url": "http://127.0.0.1:${free.get('8080')}",`;
      const config = block(heading, 'jsonc', 0);
      const own = config.includes('bind_url') ? '' : ` "bind_url": "${url}",`;
      const complete = config.replace('"Hub": {', addresses + own);
      await writeFile(join(directory, 'hub.config.json'), complete);
    },
    /** Runs commands as the reader does, to their end. */
    run: (commands: string, input = '') =>
      new Promise<{ readonly code: number; readonly output: string }>((resolve) => {
        const env = { ...process.env, PATH: `${dirname(process.execPath)}:${process.env['PATH']}` };
        const shell = execFile(
          'sh',
          ['-ec', commands],
          { cwd: directory, env },
          (error, out, err) =>
            resolve({ code: error === null ? 0 : Number(error.code), output: out + err }),
        );
        // Commands that read nothing may have ended by now.
        shell.stdin?.on('error', () => undefined);
        shell.stdin?.end(input);
      }),
    block,
    /** What runs in another terminal, until the end. */
    inBackground(commands: string): void {
      const shell = execFile('sh', ['-c', `exec ${commands}`], { cwd: directory });
      running.push({
        async [Symbol.asyncDispose]() {
          shell.kill('SIGTERM');
        },
      });
    },
    /** `npm start`, after Ctrl-C for the one before. */
    async start(): Promise<HubProcess> {
      await hub?.[Symbol.asyncDispose]();
      const program = join(projectDirectory, 'src', 'main.ts');
      hub = await startHubProcess(['start'], { cwd: directory, program });
      return hub;
    },
    async [Symbol.asyncDispose]() {
      await hub?.[Symbol.asyncDispose]();
      for (const each of running) await each[Symbol.asyncDispose]();
      await rm(directory, { recursive: true });
    },
  };
}

test.skipIf(!requires('curl', 'python3'))(
  'the tutorial does what it says, step by step',
  async () => {
    await using checkout = await createCheckout();
    const { url } = checkout;
    const notes = `${url}services/notes/`;
    const titleOf = (body: string) => /<title>([^<]*)/.exec(body)?.[1];

    // 1. Run it
    const first = await checkout.start();
    const link = /http:\S+set-up\S+/.exec(first.stdout())?.[0] ?? '';
    const ada = new FakeBrowser();
    const chosen = await submitForm(ada, await ada.open(link), {
      name: 'ada',
      new_password: adasPassword,
      repeat_password: adasPassword,
    });
    expect(chosen.headers.location).toBe('/hub/home');
    expect(titleOf((await ada.open(url)).body)).toMatch(/^Home/);

    // 2. A configuration
    await checkout.configure('2. A configuration');
    const check = checkout.block('2. A configuration', 'sh', 0);
    expect(await checkout.run(check)).toMatchObject({ code: 0 });

    // 3. Protect an app
    const [makeSite = '', serveSite = ''] = checkout
      .block('3. Protect an app', 'sh', 0)
      .trim()
      .split('\n');
    expect((await checkout.run(makeSite)).code).toBe(0);
    checkout.inBackground(serveSite);
    expect((await checkout.run(checkout.block('3. Protect an app', 'sh', 1))).code).toBe(0);
    await checkout.configure('3. Protect an app');
    await checkout.start();
    // The hub may not have seen yet that the app answers.
    let page = await new FakeBrowser().open(notes);
    await until(async () => {
      page = await new FakeBrowser().open(notes);
      return page.status !== 503;
    }, 'app ready');
    expect(page.url).toContain('/hub/login?');
    expect(titleOf(page.body)).toMatch(/^Log in/);
    await until(
      async () => (await ada.open(notes)).body.includes('Only for us'),
      'the app answers',
    );
    const [, asking = ''] = /\(`(\w+ -H 'Accept[^`]*)`\)/.exec(checkout.text) ?? [];
    const { output: refused } = await checkout.run(asking.replace('curl', 'curl -si'));
    expect(refused).toMatch(/^HTTP\/1.1 401/);
    const { output: sent } = await checkout.run(
      `curl -sL -b '' -o /dev/null -w '%{url_effective}' ${notes}`,
    );
    expect(sent).toContain('/hub/login?');
    const { output: inside } = await checkout.run(checkout.block('3. Protect an app', 'sh', 2));
    expect(inside).toContain('Only for us');

    // 4. A second user
    const adding = await checkout.run(
      // There is no terminal here to ask at.
      `${checkout.block('4. A second user', 'sh', 0).trim()} --password-stdin`,
      `${gracesPassword}\n`,
    );
    expect(adding).toEqual({ code: 0, output: expect.any(String) });
    const grace = new FakeBrowser();
    await submitLogin(grace, url, 'grace', gracesPassword);
    const home = await grace.open(url);
    expect([home.body.includes('notes'), home.body.includes('/hub/admin')]).toEqual([true, false]);
    expect((await grace.open(notes)).body).toContain('Only for us');

    // 5. A server for each user
    await checkout.configure('5. A server for each user');
    await checkout.start();
    const homeOfAda = await ada.open(url);
    const [button = ''] = /<form[^>]*action="[^"]*spawn[\s\S]*?<\/form>/.exec(homeOfAda.body) ?? [];
    const start = await submitForm(ada, { ...homeOfAda, body: button }, {});
    expect(start.status).toBe(303);
    await until(
      async () => (await ada.open(`${url}user/ada/`)).body.includes('Directory listing'),
      'the files are shown',
    );
    expect((await grace.open(`${url}user/ada/`)).status).toBe(403);

    // 6. Look after it
    const [, health = ''] = /`(curl \S+health)`/.exec(checkout.text) ?? [];
    expect((await checkout.run(`${health} -sf`)).code).toBe(0);

    // The server would outlive the hub.
    const withStop = await ada.open(`${url}hub/home`);
    const [stop = ''] = /<form[^>]*action="[^"]*stop[\s\S]*?<\/form>/.exec(withStop.body) ?? [];
    expect((await submitForm(ada, { ...withStop, body: stop }, {})).status).toBe(303);
  },
);
