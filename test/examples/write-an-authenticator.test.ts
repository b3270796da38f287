import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { FakeBrowser } from '../support/fake-browser.ts';
import { createPluginFolder, type PluginFolder } from '../support/plugin-folder.ts';
import { compileIn } from '../support/plugin-types.ts';
import { projectDirectory } from '../support/services.ts';
import { submitForm } from '../support/test-hub.ts';

let folder: PluginFolder;

/** The code of the page as it stands there, in an empty folder outside the project. */
beforeAll(async () => {
  folder = await createPluginFolder();
  await folder.writeBlocks('write-an-authenticator.md', [
    'plugins/badges.ts',
    'hub.config.json',
    'badges.json',
    'plugins/badges.test.ts',
  ]);
});

afterAll(async () => {
  await folder?.[Symbol.asyncDispose]();
});

test('the example of the how-to passes hub check as it stands', async () => {
  const { code, stdout, stderr } = await folder.hub('check');
  expect(stderr).toBe('');
  expect(stdout).toContain('login           badges');
  expect(code).toBe(0);
});

test('the program of a checkout is called as the page says', async () => {
  const page = await readFile(
    join(projectDirectory, 'docs/how-to/write-an-authenticator.md'),
    'utf8',
  );
  const [, alias = ''] = /^alias hub='(.*)'$/m.exec(page) ?? [];
  const [node = '', ...args] = alias.replaceAll('/path/to/hub', projectDirectory).split(' ');
  const run = promisify(execFile)(node, [...args, 'check'], { cwd: folder.directory });
  expect((await run).stdout).toContain('login           badges');
});

test('the example keeps the contract, by the test beside it', async () => {
  const { code, stdout, stderr } = await folder.hub('test-plugins');
  expect(stdout).toMatch(/✔ wrong credentials are an answer, not an error/);
  expect(stdout).toMatch(/ℹ fail 0/);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
});

test('the test beside the example fails when the example does', async () => {
  const plugin = await readFile(folder.path('plugins/badges.ts'), 'utf8');
  const test = await readFile(folder.path('plugins/badges.test.ts'), 'utf8');
  await folder.write('broken/badges.ts', plugin.replace('|| !isRight', ''));
  await folder.write('broken/badges.test.ts', test);
  const { code, stdout, stderr } = await folder.hub('test-plugins', 'broken');
  expect(stdout).toMatch(/✖ wrong credentials are an answer, not an error/);
  expect({ code, stderr }).toEqual({ code: 1, stderr: 'The tests of the plugins failed.\n' });
});

test('the example has no mistake of types', async () => {
  await compileIn(folder, ['plugins/badges.ts', 'plugins/badges.test.ts']);
});

test('the example lets ada in, and ends her login with the badge', async () => {
  const shown = JSON.parse(await readFile(folder.path('hub.config.json'), 'utf8'));
  await using _hub = await folder.start({
    ...shown,
    Authenticator: { ...shown.Authenticator, auth_refresh_age: 0.01 },
  });
  const logIn = async (browser: FakeBrowser, pin: string) => {
    const form = await browser.request(`${folder.url}hub/login`);
    return await submitForm(browser, form, { username: '1001', pin });
  };
  const browser = new FakeBrowser();
  expect((await logIn(new FakeBrowser(), '1357')).status).toBe(401);
  expect((await logIn(browser, '2468')).status).toBe(302);
  expect((await browser.request(`${folder.url}hub/home`)).body).toContain('ada');
  const user = (await (await folder.api('/users/ada')).json()) as { groups: string[] };
  expect(user.groups).toEqual(['reception']);

  await folder.write('badges.json', '{}');
  expect((await browser.request(`${folder.url}hub/home`)).status).toBe(302);
});
