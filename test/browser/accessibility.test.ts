import axe from 'axe-core';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasChromium, startChromium } from '../support/chromium.ts';
import { createStage, type Stage, stageLanguages } from '../support/page-stage.ts';

/** In CSS pixels: the width decides what is shown at all. In the dark nothing but colours differs. */
const windows: readonly { width: number; schemes: readonly ('light' | 'dark')[] }[] = [
  { width: 1100, schemes: ['light', 'dark'] },
  { width: 390, schemes: ['dark'] },
];

interface Root {
  readonly dataset: { theme?: string };
}

/** What axe-core finds on the page that is open: rule, element, what is wrong. */
async function violationsOf(page: Page, rules?: readonly string[]): Promise<string[]> {
  const options: axe.RunOptions = {
    resultTypes: ['violations'],
    // For one rule, which styles without a word of the screen's orientation keep, it would load them again for each page.
    preload: false,
    // Off by default: 24 by 24 CSS pixels for each target (WCAG 2.2, 2.5.8).
    rules: { 'target-size': { enabled: true } },
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

describe.runIf(hasChromium())('axe-core', () => {
  let browser: Browser;
  let stage: Stage;
  let page: Page;
  beforeAll(async () => {
    browser = await startChromium();
    stage = await createStage(browser);
    page = stage.page;
  });
  afterAll(() => browser.close());

  test.each(stageLanguages)(
    'finds nothing wrong with any page in light, in dark and on a phone (%s)',
    async (language) => {
      const found: Record<string, readonly string[]> = {};
      for (const { width, schemes } of windows) {
        await page.setViewportSize({ width, height: 800 });
        await stage.showEach(
          stage.pages(language),
          async (name) => {
            for (const [index, colorScheme] of schemes.entries()) {
              await page.emulateMedia({ colorScheme });
              const rules = index === 0 ? undefined : ['color-contrast'];
              const violations = await violationsOf(page, rules);
              if (violations.length > 0) found[`${name}, ${colorScheme}, ${width} px`] = violations;
            }
          },
          axe.source,
        );
      }
      expect(found).toEqual({});
    },
  );

  test('the chosen theme counts more than that of the system', async () => {
    await stage.open(stage.pages('en').get('home') ?? '');
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
});
