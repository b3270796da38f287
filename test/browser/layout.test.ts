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

  /** In CSS pixels: of a desk, the least at which tables have columns, of a phone. */
  const widths = [1100, 720, 390];

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

  test('names of 255 characters can be read whole, and push nothing out of the window', async () => {
    expect(await faultsOf(stage.pages('de', nameOf255), widths)).toEqual({});
  });

  test('names of 20 characters are not broken in a wide window', async () => {
    expect(await faultsOf(stage.pages('de', nameOf20), [1100])).toEqual({});
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
