import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startChromium } from '../support/chromium.ts';
import { notebookOf } from '../support/notebook-document.ts';
import { pathOf, requires } from '../support/requires.ts';
import { adminToken, createUsers, serverPath, startUntilReady } from '../support/server-hub.ts';
import { createTlsSubdomainHub, originBelow } from '../support/subdomain-hub.ts';
import type { TestHub } from '../support/test-hub.ts';

const canRun = requires(
  'jupyterhub-singleuser',
  'jupyter-notebook',
  'ipykernel',
  'chromium',
  'openssl',
);

const notebook = notebookOf([
  'import os\n',
  'print("answer", 6 * 7, "on", os.environ["JUPYTERHUB_PUBLIC_URL"])',
]);

describe.runIf(canRun)('Jupyter, as the system packages it, on an origin of its own', () => {
  let browser: Browser;
  let hub: TestHub;

  beforeAll(async () => {
    browser = await startChromium({ acceptsEveryCertificate: true });
    hub = await createTlsSubdomainHub({
      Hub: { environment_prefixes: ['HUB', 'JUPYTERHUB'] },
      Authenticator: { admin_users: ['root'] },
      Spawner: {
        cmd: [pathOf('jupyterhub-singleuser')],
        // Only root is asked for this, and only root has to say it.
        args: ['--allow-root'],
        start_timeout: 300,
        http_timeout: 300,
      },
    });
    const home = join(hub.directory, 'homes', 'alice');
    await mkdir(home, { recursive: true });
    await writeFile(join(home, 'first.ipynb'), JSON.stringify(notebook));
    await createUsers(hub, 'alice', 'bob');
    await startUntilReady(hub, serverPath('alice'));
  });
  afterAll(async () => {
    await browser?.close();
    await hub?.[Symbol.asyncDispose]();
  });

  async function logIn(userName: string): Promise<Page> {
    const page = await (await browser.newContext()).newPage();
    await page.goto(`${hub.url}hub/login`);
    await page.fill('[name=username]', userName);
    await page.fill('[name=password]', 'test');
    await page.press('[name=password]', 'Enter');
    await page.waitForURL(`${hub.url}hub/home`);
    return page;
  }

  test('is opened from the hub, runs code in a kernel, and leads back to the hub', async () => {
    const origin = originBelow(hub, 'alice');
    const page = await logIn('alice');
    await page.click('text=Open');
    await page.waitForURL(`${origin}/user/alice/**`);
    await page.getByText('first.ipynb').first().waitFor();

    await page.goto(`${origin}/user/alice/notebooks/first.ipynb`);
    await page.locator('#kernel_indicator_icon.kernel_idle_icon').waitFor({ timeout: 120_000 });
    await page.locator('.cell .CodeMirror').first().click();
    await page.keyboard.press('Shift+Enter');
    await page
      .locator('.output_stdout')
      .getByText(`answer 42 on ${origin}/user/alice/`)
      .waitFor({ timeout: 120_000 });
    const screenshot = process.env['SCREENSHOT_DIR'];
    if (screenshot !== undefined)
      await page.screenshot({ path: join(screenshot, 'notebook-on-its-own-origin.png') });

    expect(
      await page.evaluate("document.querySelector('#ipython_notebook img').naturalWidth"),
    ).toBeGreaterThan(0);

    const names = (await page.context().cookies(`${origin}/user/alice/`)).map(({ name }) => name);
    expect(names).not.toContain('__Host-hub-hub-login');
    expect(names).toContain('jupyterhub-session-id');
    const panel = page.getByRole('link', { name: 'Control Panel' }).first();
    await page.goto(new URL((await panel.getAttribute('href')) ?? '', page.url()).href);
    expect(page.url()).toBe(`${hub.url}hub/home`);
    await page.context().close();
  });

  test('is closed to another user, whose login is for nothing there', async () => {
    const page = await logIn('bob');
    const answer = await page.goto(`${originBelow(hub, 'alice')}/user/alice/tree`);
    expect(answer?.status()).toBe(403);
    await page.context().close();
  });

  test('is closed at once when its user is logged out everywhere', async () => {
    const page = await logIn('alice');
    await page.goto(`${originBelow(hub, 'alice')}/user/alice/tree`);
    await page.getByText('first.ipynb').first().waitFor();
    await hub.api('/users/alice/sessions', adminToken, { method: 'DELETE' });
    await page.goto(`${originBelow(hub, 'alice')}/user/alice/tree`);
    expect(new URL(page.url()).pathname).toBe('/hub/login');
    await page.context().close();
  });
});
