import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { extname, join, posix } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startChromium } from '../support/chromium.ts';
import { requires } from '../support/requires.ts';
import { projectDirectory } from '../support/services.ts';

const base = '/0.1/';
const types: Readonly<Record<string, string>> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
};

describe.skipIf(!requires('site-generator'))('the documentation as a site', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'site-'));
    await promisify(execFile)(
      process.execPath,
      ['site/node_modules/vitepress/bin/vitepress.js', 'build', 'site'],
      {
        cwd: projectDirectory,
        env: {
          SITE_DIRECTORY: folder,
          SITE_BASE: base,
          SITE_VERSIONS: 'https://docs.example.org/0.0/',
        },
      },
    );
  });
  afterAll(async () => rm(folder, { recursive: true, force: true }));

  /** Files by their path on the site. */
  const files = () =>
    new Map(
      readdirSync(folder, { recursive: true, encoding: 'utf8' }).map(
        (path) => [base + path, join(folder, path)] as const,
      ),
    );

  test('leads nowhere but to what is there, anchors included', () => {
    const found = files();
    const pages = new Map(
      [...found]
        .filter(([path]) => path.endsWith('.html'))
        .map(([path, file]) => [path, readFileSync(file, 'utf8')]),
    );
    expect(pages.size).toBeGreaterThan(60);
    const broken: string[] = [];
    for (const [path, text] of pages) {
      for (const [, link = ''] of text.matchAll(/ (?:href|src|srcset)="([^"]+)"/g)) {
        if (/^[a-z]+:/.test(link)) continue;
        const [to = '', anchor = ''] = link.replaceAll('&amp;', '&').split('#');
        const target =
          to === '' ? path : posix.resolve(posix.dirname(path), to) + (to.endsWith('/') ? '/' : '');
        const file = target.endsWith('/') ? `${target}index.html` : target;
        const page = pages.get(file);
        const isThere =
          anchor === '' ? found.has(file) : page?.includes(` id="${decodeURIComponent(anchor)}"`);
        if (isThere !== true) broken.push(`${path}: ${link}`);
      }
    }
    expect([...new Set(broken)]).toEqual([]);
    expect(pages.get(`${base}index.html`)).toContain('href="https://docs.example.org/0.0/"');
  });

  test.skipIf(!requires('chromium'))('is searched, and asks no other host', async () => {
    const found = files();
    const server = createServer(({ url = '' }, answer) => {
      const { pathname } = new URL(url, 'http://site');
      const file = found.get(pathname.endsWith('/') ? `${pathname}index.html` : pathname);
      answer.writeHead(file === undefined ? 404 : 200, {
        'content-type': types[extname(file ?? '')] ?? 'application/octet-stream',
      });
      answer.end(file && readFileSync(file));
    });
    const { promise, resolve } = Promise.withResolvers<void>();
    server.listen(0, '127.0.0.1', resolve);
    await promise;
    const { port } = server.address() as { readonly port: number };
    await using browser = await startChromium();
    const page = await browser.newPage();
    const asked: string[] = [];
    const failed: number[] = [];
    page.on('request', (request) => asked.push(new URL(request.url()).host));
    page.on('response', (response) => {
      if (response.status() >= 400) failed.push(response.status());
    });
    await page.goto(`http://127.0.0.1:${port}${base}`);
    const search = page.locator('.VPLocalSearchBox input');
    // Until its scripts have run, the page hears no keys.
    const isOpen = async () => {
      await page.keyboard.press('Control+k');
      return await search.isVisible();
    };
    await expect.poll(isOpen).toBe(true);
    await search.fill('stop idle servers');
    await page.locator('.VPLocalSearchBox .result').first().click();
    await page.waitForURL(/stop-idle-servers/);
    expect(await page.locator('h1').textContent()).toContain('Stop idle servers');
    expect([...new Set(asked)]).toEqual([`127.0.0.1:${port}`]);
    expect(failed).toEqual([]);
    server.closeAllConnections();
    server.close();
  });
});
