import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasChromium, startChromium } from '../support/chromium.ts';
import { pageFaults } from '../support/page-faults.ts';
import { createStage, type Stage, stageLanguages } from '../support/page-stage.ts';

describe.runIf(hasChromium())('pages in a window', () => {
  let browser: Browser;
  let stage: Stage;
  beforeAll(async () => {
    browser = await startChromium();
    stage = await createStage(browser);
  });
  afterAll(() => browser.close());

  /** In CSS pixels: of a desk, of a narrow one, the least at which tables have columns, of a phone. */
  const widths = [1280, 1100, 720, 390];

  /** What is out of place on these pages, by page and width. */
  async function faultsOf(
    pages: ReadonlyMap<string, string>,
    widths: readonly number[],
  ): Promise<Record<string, readonly string[]>> {
    const found: Record<string, readonly string[]> = {};
    for (const width of widths) {
      await stage.page.setViewportSize({ width, height: 800 });
      await stage.showEach(pages, async (name) => {
        const all = await stage.page.evaluate<string[]>(pageFaults);
        // Seven columns leave no room for each long word in the narrowest window that has columns.
        const faults = width === 720 ? all.filter((fault) => !fault.startsWith('broken')) : all;
        if (faults.length > 0) found[`${name} at ${width}`] = faults;
      });
    }
    return found;
  }

  test.each(stageLanguages)('nothing is out of place, cut off or broken (%s)', async (language) => {
    expect(await faultsOf(stage.pages(language), widths)).toEqual({});
  });

  test('the parts of the administration stand in one line on a phone, and keys reach each of them', async () => {
    const { page } = stage;
    await page.setViewportSize({ width: 390, height: 800 });
    await stage.open(stage.pages('de').get('admin-activity') ?? '');
    const tabs = page.locator('.tabs a');
    const places = async () => Promise.all((await tabs.all()).map((tab) => tab.boundingBox()));
    expect(new Set((await places()).map((place) => place?.y)).size).toBe(1);
    const isInView = (place: { x: number; width: number } | null | undefined) =>
      place != null && place.x >= 0 && place.x + place.width <= 390;
    const isSeen = (place: { x: number; width: number } | null) =>
      place !== null && place.x + place.width > 0 && place.x < 350;
    // The one of the page is in view from the start.
    expect(isInView(await page.locator('.tabs [aria-current]').boundingBox())).toBe(true);
    await tabs.first().focus();
    for (let index = 0; index < (await tabs.count()); index += 1) {
      const focused = page.locator('.tabs a:focus');
      expect(await focused.textContent()).toBe(await tabs.nth(index).textContent());
      await expect.poll(async () => isSeen(await focused.boundingBox())).toBe(true);
      await page.keyboard.press('Tab');
    }
  });

  test('names of 255 characters can be read whole, and push nothing out of the window', async () => {
    expect(await faultsOf(stage.pages('de', nameOf255), widths.slice(1))).toEqual({});
  });

  test('twelve users are seen in a window of 800 pixels, and what is done with them once one is ticked', async () => {
    const { page } = stage;
    await page.setViewportSize({ width: 1280, height: 800 });
    await stage.open(stage.pages('en').get('admin-users-to-read') ?? '');
    // One whose server was busy has plots in more lines, in a short list only.
    const seen = await page.evaluate<number>(
      `(() => {
        const list = document.querySelector('tbody');
        list.rows[0].remove();
        while (list.rows.length < 20) list.append(list.rows[2].cloneNode(true));
        return Array.from(list.rows).filter((row) => row.getBoundingClientRect().bottom <= 800).length;
      })()`,
    );
    expect(seen).toBeGreaterThanOrEqual(12);
    await stage.open(stage.pages('en').get('admin-users') ?? '');
    const bar = page.getByRole('button', { name: 'Continue' });
    expect(await bar.isVisible()).toBe(false);
    await page.locator('td.tick input').first().check();
    expect(await bar.isVisible()).toBe(true);
  });

  test('names of 20 characters are not broken in a wide window', async () => {
    expect(await faultsOf(stage.pages('de', nameOf20), [1100])).toEqual({});
  });

  test('no word of what was done is broken, and each part of a page keeps its distance', async () => {
    const { page } = stage;
    await page.setViewportSize({ width: 720, height: 800 });
    const pages = stage.pages('en');
    await stage.open(pages.get('admin-activity') ?? '');
    const lines = await page.evaluate<number[]>(
      `Array.from(document.querySelectorAll('td.name')).flatMap((cell) => {
        const words = cell.firstElementChild.firstChild;
        return Array.from(words.data.matchAll(/\\S+/g), ({ 0: word, index }) => {
          const range = document.createRange();
          range.setStart(words, index);
          range.setEnd(words, index + word.length);
          return new Set(Array.from(range.getClientRects(), ({ top }) => top)).size;
        });
      })`,
    );
    expect(lines.length).toBeGreaterThan(3);
    expect(new Set(lines)).toEqual(new Set([1]));
    await stage.open(pages.get('not-found') ?? '');
    const gap = await page.evaluate<number>(
      `(() => {
        const [above, last] = Array.from(document.querySelector('.panel.error').children).slice(-2);
        return last.getBoundingClientRect().top - above.getBoundingClientRect().bottom;
      })()`,
    );
    expect(gap, 'not-found').toBeGreaterThanOrEqual(16);
    for (const name of ['admin-service', 'server-running']) {
      await stage.open(pages.get(name) ?? '');
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

  test('the button that shows a password stands in its field, and leaves room for what is typed', async () => {
    const { page } = stage;
    await page.setViewportSize({ width: 390, height: 800 });
    await stage.open(stage.pages('de').get('login') ?? '', 'with scripts');
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

/** Names of languages are told by the browser. */
const namesOfLanguages = /^(?:Deutsch|English)$/;

function nameOf255(plausible: string): string {
  return namesOfLanguages.test(plausible) ? plausible : plausible.padEnd(255, 'x');
}

function nameOf20(plausible: string): string {
  return /^[a-z][\w-]*$/.test(plausible) ? plausible.padEnd(20, 'interaction-studies') : plausible;
}
