import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startChromium } from '../support/chromium.ts';
import { guardedNotebook } from '../support/guarded-notebook.ts';
import { notebookOf } from '../support/notebook-document.ts';
import { requires } from '../support/requires.ts';
import {
  createServerHub,
  getServer,
  serverPath,
  startServer,
  untilServer,
} from '../support/server-hub.ts';

test.skipIf(!requires('jupyter-notebook', 'ipykernel', 'chromium'))(
  'a notebook that calculates or waits lives with its tab closed, and one in a forgotten tab does not',
  async () => {
    await using browser = await startChromium();
    await using hub = await createServerHub({
      Spawner: {
        ...guardedNotebook(),
        start_timeout: 300,
        http_timeout: 300,
        idle_timeout_seconds: 60,
        kernels_path: '/api/sessions',
      },
    });

    async function openNotebook(userName: string, code: string) {
      const home = join(hub.directory, 'homes', userName);
      await mkdir(home, { recursive: true });
      await writeFile(join(home, 'a.ipynb'), JSON.stringify(notebookOf([code])));
      const context = await browser.newContext();
      const page = await context.newPage();
      await page.goto(`${hub.url}hub/login`);
      await page.fill('[name=username]', userName);
      await page.fill('[name=password]', 'test');
      await page.press('[name=password]', 'Enter');
      await page.waitForURL(`${hub.url}hub/home`);
      const path = serverPath(userName);
      await startServer(hub, path);
      await untilServer(hub, path, ({ ready }) => ready, 'Jupyter is ready');
      await page.goto(`${hub.url}user/${userName}/notebooks/a.ipynb`);
      await page.locator('#kernel_indicator_icon.kernel_idle_icon').waitFor({ timeout: 120_000 });
      return page;
    }

    for (const [userName, code] of [
      ['carl', 'import time; time.sleep(3600)'],
      ['bob', 'while True: pass'],
    ] as const) {
      const working = await openNotebook(userName, code);
      await working.locator('.cell .CodeMirror').first().click();
      await working.keyboard.press('Shift+Enter');
      await working.locator('#kernel_indicator_icon.kernel_busy_icon').waitFor();
      expect(await getServer(hub, serverPath(userName))).toMatchObject({
        busy_kernels: ['a.ipynb'],
      });
      await working.context().close();
    }
    await openNotebook('alice', '1 + 1');

    const alice = serverPath('alice');
    await untilServer(hub, alice, ({ stopped }) => stopped, 'the forgotten one is stopped');
    expect(await getServer(hub, alice)).toMatchObject({ stop_reason: 'idle_timeout' });
    for (const userName of ['bob', 'carl'])
      expect(await getServer(hub, serverPath(userName))).toMatchObject({ ready: true });
  },
  600_000,
);
