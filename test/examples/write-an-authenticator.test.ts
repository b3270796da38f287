import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { FakeBrowser } from '../support/fake-browser.ts';
import { adminToken } from '../support/server-hub.ts';
import { createTestHub, submitForm } from '../support/test-hub.ts';

const project = join(import.meta.dirname, '../..');
const run = promisify(execFile);
const pinSha256 = createHash('sha256').update('2468').digest('hex');
let directory: string;
let page: string;

/** The code of the page as it stands there, in files where the page says they are. */
beforeAll(async () => {
  page = await readFile(join(project, 'docs/how-to/write-an-authenticator.md'), 'utf8');
  // Inside the project: there `hub/plugin` and `hub/testing` mean what they mean to a reader.
  await mkdir(join(project, '.hub'), { recursive: true });
  directory = await mkdtemp(join(project, '.hub', 'how-to-'));
  await mkdir(join(directory, 'plugins'));
  const code = [...page.matchAll(/^```ts\n\/\/ (plugins\/[\w.-]+)\n([\s\S]*?)^```$/gm)];
  expect(code.map(([, file]) => file)).toEqual(['plugins/badges.ts', 'plugins/badges.test.ts']);
  for (const [, file = '', text = ''] of code) await writeFile(join(directory, file), text);
});

afterAll(async () => {
  await rm(directory, { recursive: true, force: true });
});

test('the example of the how-to keeps the contract, by the test that stands beside it', async () => {
  const config = `import { defineConfig } from 'vitest/config';
export default defineConfig({ test: { include: ['plugins/*.test.ts'] } });
`;
  await writeFile(join(directory, 'vitest.config.ts'), config);
  const vitest = join(project, 'node_modules/vitest/vitest.mjs');
  const { stdout } = await run(process.execPath, [vitest, 'run', '--root', directory], {
    cwd: directory,
    env: { ...process.env, NO_COLOR: '1' },
  });
  expect(stdout).toMatch(/Tests +\d+ passed/);
});

test('the example of the how-to has no mistake of types', async () => {
  const settings = {
    extends: join(project, 'tsconfig.json'),
    compilerOptions: { noEmit: true, skipLibCheck: true },
    include: [join(directory, 'plugins/*.ts')],
    exclude: [],
  };
  await writeFile(join(directory, 'tsconfig.json'), JSON.stringify(settings));
  const tsc = join(project, 'node_modules/typescript/bin/tsc');
  await run(process.execPath, [tsc, '-p', join(directory, 'tsconfig.json')]);
});

test('the example of the how-to lets somebody in, and ends the login with the badge', async () => {
  const [, text = ''] = /^```json\n([\s\S]*?)^```$/m.exec(page) ?? [];
  const shown = JSON.parse(text) as Record<string, Record<string, unknown>>;
  const badges = join(directory, 'badges.json');
  const keep = (list: object) => writeFile(badges, JSON.stringify(list));
  await keep({ 1001: { name: 'Ada', pinSha256, teams: ['reception'] } });
  await using hub = await createTestHub({
    ...shown,
    Hub: { ...shown['Hub'], plugins_dir: join(directory, 'plugins') },
    Authenticator: { ...shown['Authenticator'], auth_refresh_age: 0.01 },
    BadgeAuthenticator: { file: badges },
  });
  const logIn = async (browser: FakeBrowser, pin: string) => {
    const form = await browser.request(`${hub.url}hub/login`);
    return await submitForm(browser, form, { username: '1001', pin });
  };
  const browser = new FakeBrowser();
  expect((await logIn(new FakeBrowser(), '1357')).status).toBe(401);
  expect((await logIn(browser, '2468')).status).toBe(302);
  expect((await browser.request(`${hub.url}hub/home`)).body).toContain('ada');
  const user = (await (await hub.api('/users/ada', adminToken)).json()) as { groups: string[] };
  expect(user.groups).toEqual(['reception']);

  await keep({});
  expect((await browser.request(`${hub.url}hub/home`)).status).toBe(302);
});
