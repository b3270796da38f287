import axe from 'axe-core';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loadAssets } from '../../src/pages/assets/assets.ts';
import { renderHtml } from '../../src/pages/html.ts';
import { loadLanguages } from '../../src/texts/languages.ts';
import { hasChromium, startChromium } from '../support/chromium.ts';
import { sampleLookFiles } from '../support/sample-look.ts';
import { samplePages } from '../support/sample-pages.ts';

// Answered by the browser's own interception: no request leaves it.
const origin = 'http://hub.test';
const assets = await loadAssets({ staticUrl: '/hub/static/' });
assets.setOwnFiles(sampleLookFiles);
const german = (await loadLanguages()).find('de');
const samples = Object.entries(samplePages(assets));
const pages = new Map(samples.map(([name, page]) => [name, renderHtml(page)]));
// Longer words: what is out of place by them, and what speaks of its language.
for (const [name, page] of samples) pages.set(`de/${name}`, renderHtml(page, german));

// Colours and sizes are all that the theme and the width change; all other rules are asked once.
const looks: readonly Look[] = [
  { look: 'in light', colorScheme: 'light', width: 1100 },
  { look: 'in dark', colorScheme: 'dark', width: 1100, rules: ['color-contrast'] },
  {
    look: 'on a phone',
    colorScheme: 'dark',
    width: 390,
    rules: ['color-contrast', 'target-size', 'scrollable-region-focusable'],
  },
];

interface Root {
  readonly dataset: { theme?: string };
}

/** Its words and their room are all that another language changes. */
const germanLooks: readonly Look[] = [
  {
    look: 'on a phone',
    colorScheme: 'light',
    width: 390,
    rules: ['html-has-lang', 'html-lang-valid', 'label', 'button-name', 'link-name', 'target-size'],
  },
];

interface Look {
  readonly look: string;
  readonly colorScheme: 'light' | 'dark';
  /** In CSS pixels. */
  readonly width: number;
  /** Rules of axe-core; all of them by default. */
  readonly rules?: readonly string[];
}

/** What axe-core finds on the page that is open: rule, element, what is wrong. */
async function violationsOf(page: Page, rules?: readonly string[]): Promise<string[]> {
  const options: axe.RunOptions = {
    resultTypes: ['violations'],
    ...(rules !== undefined && { runOnly: [...rules] }),
  };
  const { violations } = await page.evaluate(
    (asked) => (globalThis as unknown as { axe: typeof axe }).axe.run(asked),
    options,
  );
  return violations.flatMap(({ id, nodes }) =>
    nodes.map((node) => `${id}: ${node.html} ${node.failureSummary ?? ''}`),
  );
}

/** Answers with these pages and what belongs to them. */
async function serve(page: Page, served: ReadonlyMap<string, string>): Promise<void> {
  await page.route('**', async (route) => {
    const { pathname } = new URL(route.request().url());
    const asset = assets.find(pathname);
    if (asset !== undefined) {
      await route.fulfill({ body: asset.body, contentType: asset.contentType });
      return;
    }
    const body = withoutScripts(served.get(pathname.slice(1)) ?? '');
    await route.fulfill({ body, contentType: 'text/html; charset=utf-8' });
  });
}

/** Scripts would reload and follow what is not there. */
const withoutScripts = (html: string) => html.replaceAll(/<script\b[^>]*>\s*<\/script>/g, '');

/** How many CSS pixels the page is wider than the window. */
async function overflowOf(page: Page): Promise<string[]> {
  const pixels = await page.evaluate<number>(
    'document.documentElement.scrollWidth - document.documentElement.clientWidth',
  );
  return pixels > 0 ? [`is ${pixels} px too wide`] : [];
}

describe.runIf(hasChromium())('axe-core', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await startChromium();
  });
  afterAll(() => browser.close());

  test('finds nothing wrong with any page, in light, in dark and on a phone', async () => {
    const page = await browser.newPage({ reducedMotion: 'reduce' });
    await serve(page, pages);
    // Every page is written into the one document that has axe-core: to open each, and axe-core in it, takes
    // four times as long as all the rules.
    await page.goto(origin);
    await page.evaluate(axe.source);
    const found: Record<string, readonly string[]> = {};
    for (const [name, html] of pages) {
      await page.setContent(withoutScripts(html));
      for (const { look, colorScheme, width, rules } of name.startsWith('de/')
        ? germanLooks
        : looks) {
        await page.emulateMedia({ colorScheme });
        await page.setViewportSize({ width, height: 800 });
        const violations = await violationsOf(page, rules);
        const overflow = await overflowOf(page);
        if (violations.length + overflow.length > 0) {
          found[`${name} ${look}`] = [...violations, ...overflow];
        }
      }
    }
    expect(found).toEqual({});
  });

  test('no word of what was done is broken, and each part of a page keeps its distance', async () => {
    const page = await browser.newPage({ viewport: { width: 720, height: 800 } });
    await serve(page, pages);
    await page.goto(`${origin}/admin-activity`);
    const lines = await page.evaluate<number[]>(
      `Array.from(document.querySelectorAll('td.name'), (cell) => {
        const range = document.createRange();
        range.selectNodeContents(cell.firstElementChild);
        return new Set(Array.from(range.getClientRects(), ({ top }) => top)).size;
      })`,
    );
    expect(lines.length).toBeGreaterThan(3);
    expect(new Set(lines)).toEqual(new Set([1]));
    for (const name of ['admin-service', 'server-running']) {
      await page.goto(`${origin}/${name}`);
      const distance = await page.evaluate<number>(
        `(() => {
          const output = document.querySelector('.live-output');
          const above = output.previousElementSibling.getBoundingClientRect().bottom;
          return output.getBoundingClientRect().top - above;
        })()`,
      );
      expect(distance, name).toBeGreaterThan(30);
    }
  });

  test('the chosen theme counts more than that of the system', async () => {
    const page = await browser.newPage({ reducedMotion: 'reduce' });
    await page.route('**', async (route) => {
      const asset = assets.find(new URL(route.request().url()).pathname);
      const body = asset?.body ?? pages.get('home') ?? '';
      await route.fulfill({ body, contentType: asset?.contentType ?? 'text/html' });
    });
    await page.goto(`${origin}/home`);
    const look = async (colorScheme: 'light' | 'dark', theme?: 'light' | 'dark') => {
      await page.emulateMedia({ colorScheme });
      await page.locator('html').evaluate((root: Root, chosen) => {
        if (chosen === undefined) delete root.dataset.theme;
        else root.dataset.theme = chosen;
      }, theme);
      return page.evaluate<string[]>(
        `['body', '.button.primary'].map((each) => getComputedStyle(document.querySelector(each)).backgroundColor)`,
      );
    };
    const light = await look('light');
    const dark = await look('dark');
    expect(light[0]).not.toEqual(dark[0]);
    expect(light[1]).not.toEqual(dark[1]);
    expect(await look('dark', 'light')).toEqual(light);
    expect(await look('light', 'dark')).toEqual(dark);
  });

  test('the button that shows a password stands in its field, and leaves room for what is typed', async () => {
    const page = await browser.newPage({ viewport: { width: 390, height: 800 } });
    await page.route('**', async (route) => {
      const asset = assets.find(new URL(route.request().url()).pathname);
      const body = asset?.body ?? pages.get('de/login') ?? pages.get('login') ?? '';
      await route.fulfill({ body, contentType: asset?.contentType ?? 'text/html; charset=utf-8' });
    });
    await page.goto(`${origin}/login`);
    const button = page.locator('button[data-reveal]');
    await button.click();
    const [field, inside] = [
      await page.locator('.with-button .input').boundingBox(),
      await button.boundingBox(),
    ];
    const ends = (box: typeof field) =>
      box && [box.x, box.y, box.x + box.width, box.y + box.height];
    const [left = 0, top = 0, right = 0, bottom = 0] = ends(inside) ?? [];
    const [fieldLeft = 0, fieldTop = 0, fieldRight = 0, fieldBottom = 0] = ends(field) ?? [];
    expect([left > fieldLeft, top > fieldTop, right < fieldRight, bottom < fieldBottom]).toEqual([
      true,
      true,
      true,
      true,
    ]);
    const padding = await page.evaluate<string>(
      `getComputedStyle(document.querySelector('.with-button .input')).paddingInlineEnd`,
    );
    expect(Number.parseFloat(padding)).toBeGreaterThanOrEqual(fieldRight - left);
  });
});
