import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startChromium } from '../support/chromium.ts';
import { notebookOf } from '../support/notebook-document.ts';
import { pathOf, requires } from '../support/requires.ts';
import { serverPath, startServer, stopServer, untilServer } from '../support/server-hub.ts';
import { createTestHub, submitForm, type TestHub, until } from '../support/test-hub.ts';

const canRun = requires('jupyterhub-singleuser', 'jupyter-notebook', 'ipykernel', 'chromium');

const notebook = notebookOf([
  'import os\n',
  'print("answer", 6 * 7, "for", os.environ["JUPYTERHUB_USER"])',
]);

interface UserModel {
  readonly servers: Readonly<Record<string, { readonly last_activity: string | null }>>;
}

describe.runIf(canRun)('Jupyter, as the system packages it,', () => {
  let browser: Browser;
  let hub: TestHub;

  beforeAll(async () => {
    browser = await startChromium();
    hub = await createTestHub({
      Hub: {
        environment_prefixes: ['HUB', 'JUPYTERHUB'],
        cleanup_servers: true,
        allow_named_servers: true,
      },
      Authenticator: { admin_users: ['root'] },
      Spawner: {
        cmd: [pathOf('jupyterhub-singleuser')],
        // Only root is asked for this, and only root has to say it.
        args: ['--allow-root'],
        environment: { JUPYTERHUB_ACTIVITY_INTERVAL: '1' },
        start_timeout: 300,
        http_timeout: 300,
      },
    });
    const home = join(hub.directory, 'homes', 'alice');
    await mkdir(home, { recursive: true });
    await writeFile(join(home, 'first.ipynb'), JSON.stringify(notebook));
  });

  afterAll(async () => {
    await browser?.close();
    await hub?.[Symbol.asyncDispose]();
  });

  async function logIn(page: Page, userName: string): Promise<void> {
    await page.goto(`${hub.url}hub/login`);
    await page.fill('[name=username]', userName);
    await page.fill('[name=password]', 'test');
    await page.press('[name=password]', 'Enter');
    await page.waitForURL(`${hub.url}hub/home`);
  }

  async function issueToken(userName: string): Promise<string> {
    const answer = await hub.api(`/users/${userName}/tokens`, 'admin-service-token', {
      method: 'POST',
      body: '{}',
    });
    return ((await answer.json()) as { token: string }).token;
  }

  test('starts from the hub, logs its owner in and runs code in a kernel', async () => {
    const context = await browser.newContext();
    const page = await context.newPage();
    await logIn(page, 'alice');
    await page.goto(`${hub.url}hub/spawn`);
    await page.click('form[method=post] >> text=/start/i');
    await page.waitForURL(/\/user\/alice\/tree/, { timeout: 90_000 });
    await page.getByText('first.ipynb').waitFor();

    await page.goto(`${hub.url}user/alice/notebooks/first.ipynb`);
    await page.locator('#kernel_indicator_icon.kernel_idle_icon').waitFor({ timeout: 120_000 });
    await page.locator('.cell .CodeMirror').first().click();
    await page.keyboard.press('Shift+Enter');
    await page
      .locator('.output_stdout')
      .getByText('answer 42 for alice')
      .waitFor({ timeout: 120_000 });
    const screenshot = process.env['SCREENSHOT_DIR'];
    if (screenshot !== undefined) await page.screenshot({ path: join(screenshot, 'notebook.png') });
    await context.close();
  });

  test('finds a hub that gives a version it can compare, and the logo it shows', async () => {
    const api = await hub.api('', undefined);
    expect(api.headers.get('x-jupyterhub-version')).toMatch(/^\d+\.\d+\.\d+$/);
    expect(await api.json()).toEqual({
      version: api.headers.get('x-jupyterhub-version'),
      hub_version: '0.0.0-test',
    });
    const logo = await fetch(`${hub.url}hub/logo`);
    expect(logo.headers.get('content-type')).toContain('image/svg+xml');
    const report = await fetch(`${hub.url}hub/security/csp-report`, { method: 'POST', body: '{}' });
    expect(report.status).toBe(204);
  });

  test('reports what its owner does to the hub', async () => {
    const server = async () => {
      const answer = await hub.api('/users/alice', 'admin-service-token');
      return ((await answer.json()) as UserModel).servers[''];
    };
    const before = (await server())?.last_activity ?? '';
    const browser = await hub.logIn('alice');
    expect((await browser.open(`${hub.url}user/alice/tree`)).status).toBe(200);
    await until(
      async () => ((await server())?.last_activity ?? '') > before,
      'the activity is known',
    );
  });

  test('answers a program that shows its owner’s token, and not one that shows another’s', async () => {
    const asking = async (token: string) =>
      fetch(`${hub.url}user/alice/api/contents`, { headers: { authorization: `token ${token}` } });
    const contents = await asking(await issueToken('alice'));
    expect(contents.status).toBe(200);
    expect(JSON.stringify(await contents.json())).toContain('first.ipynb');
    expect((await asking(await issueToken('bob'))).status).toBe(403);
    expect((await asking('hub_no-token')).status).toBe(403);
  });

  test('is closed to another user and open to an administrator', async () => {
    const bob = await hub.logIn('bob');
    expect((await bob.open(`${hub.url}user/alice/tree`)).status).toBe(403);
    const root = await hub.logIn('root');
    const consent = await root.open(`${hub.url}user/alice/tree`);
    const allowed = await submitForm(root, consent, { decision: 'allow' });
    const page = await root.open(new URL(allowed.headers.location ?? '', hub.url).href);
    expect([page.status, page.url]).toEqual([200, expect.stringContaining('/user/alice/tree')]);
  });

  test.each([
    ['jürgen weiß', ''],
    ['ann@example.org', 'lab'],
  ])(
    'starts for the user %s, server "%s", whose address must be encoded',
    async (userName, name) => {
      const path = serverPath(userName, name);
      const person = await hub.logIn(userName);
      await startServer(hub, path);
      const { url } = await untilServer(hub, path, ({ ready }) => ready, 'Jupyter is ready');
      const page = await person.open(new URL(`${url}tree`, hub.url).href);
      expect(page.body).toContain('data-server-root');
      expect(new URL(page.url).pathname).toBe(`${url}tree`);
      // Its cookie serves a second visit: no login in between.
      expect((await person.request(page.url)).status).toBe(200);
      expect((await stopServer(hub, path)).status).toBe(204);
    },
  );

  test('notices at once that its owner has logged out', async () => {
    const context = await browser.newContext();
    const page = await context.newPage();
    await logIn(page, 'alice');
    await page.goto(`${hub.url}user/alice/tree`);
    await page.click('#logout');
    await page.waitForURL(/\/hub\/logout|\/hub\/login/);
    await page.goto(`${hub.url}user/alice/tree`);
    expect(new URL(page.url()).pathname).toBe('/hub/login');
    await context.close();
  });
});
