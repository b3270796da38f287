import { readFile } from 'node:fs/promises';
import { getPriority } from 'node:os';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { FakeBrowser } from '../support/fake-browser.ts';
import { createPluginFolder, type PluginFolder } from '../support/plugin-folder.ts';
import { compileIn } from '../support/plugin-types.ts';
import { requires } from '../support/requires.ts';
import { isAlive, type ServerModel } from '../support/server-hub.ts';
import { submitForm, until } from '../support/test-hub.ts';

let folder: PluginFolder;

/** The code of the page as it stands there, in an empty folder outside the project. */
beforeAll(async () => {
  folder = await createPluginFolder();
  await folder.writeBlocks('write-a-spawner.md', [
    'plugins/nice.ts',
    'hub.config.json',
    'plugins/nice.test.ts',
  ]);
});

afterAll(async () => {
  await folder?.[Symbol.asyncDispose]();
});

test('the example of the how-to passes hub check as it stands', async () => {
  expect(await folder.hub('check')).toMatchObject({ code: 0, stderr: '' });
});

test('the example keeps the contract, by the test beside it', async () => {
  const { code, stdout, stderr } = await folder.hub('test-plugins');
  expect(stdout).toMatch(/✔ the next hub finds a server again by its state, and can stop it/);
  expect(stdout).toMatch(/ℹ fail 0/);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
});

test('the example has no mistake of types', async () => {
  await compileIn(folder, ['plugins/nice.ts', 'plugins/nice.test.ts']);
});

async function serverOf(): Promise<ServerModel | undefined> {
  const user = (await (await folder.api('/users/ada?include_stopped_servers')).json()) as {
    servers: Record<string, ServerModel>;
  };
  return user.servers[''];
}

const pidOf = (server: ServerModel | undefined) => Number(server?.state?.['pid']);

test.skipIf(!requires('python3'))(
  'the example serves /user/ada/, gives way, is found by the next hub, and ends',
  async () => {
    const shown = JSON.parse(await readFile(folder.path('hub.config.json'), 'utf8'));
    const config = {
      ...shown,
      Spawner: { ...shown.Spawner, start_timeout: 300, http_timeout: 300 },
    };
    const browser = new FakeBrowser();
    let pid = 0;
    {
      await using _hub = await folder.start(config);
      const form = await browser.request(`${folder.url}hub/login`);
      expect((await submitForm(browser, form, { username: 'ada' })).status).toBe(302);
      expect([201, 202]).toContain(
        (await folder.api('/users/ada/server', { method: 'POST' })).status,
      );
      await until(async () => (await serverOf())?.ready === true, 'the server is ready');
      await folder.write('homes/ada/notes.txt', 'of ada');
      expect((await browser.open(`${folder.url}user/ada/`)).body).toContain('notes.txt');
      pid = pidOf(await serverOf());
      expect(getPriority(pid)).toBe(5);
    }

    await using _next = await folder.start(config);
    await until(async () => (await serverOf())?.ready === true, 'the server is found again');
    expect(pidOf(await serverOf())).toBe(pid);
    expect((await browser.open(`${folder.url}user/ada/notes.txt`)).body).toBe('of ada');
    expect([202, 204]).toContain(
      (await folder.api('/users/ada/server', { method: 'DELETE' })).status,
    );
    await until(async () => (await serverOf())?.stopped !== false, 'the server is stopped');
    expect(isAlive(pid)).toBe(false);
  },
);
