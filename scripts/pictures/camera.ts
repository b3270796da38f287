import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { fileOf, type Picture, type PictureName, pictures, themes } from './list.ts';

const wide = { width: 960, height: 700 };
const narrow = { width: 390, height: 844 };
/** Of a CSS pixel, so that pictures are 1,200 pixels wide. */
const scale = 1.25;
const highest = 1_500;
const quality = 72;

export interface Camera extends AsyncDisposable {
  /** A browser profile of its own, in which no one is logged in. */
  openPage(): Promise<Page>;
  /** Takes the page as it is, in the colours of each theme. */
  take(page: Page, name: PictureName): Promise<void>;
}

export function createCamera(
  browser: Browser,
  { folder, language }: { readonly folder: string; readonly language: string },
): Camera {
  const contexts = new Set<BrowserContext>();
  return {
    async openPage() {
      const context = await browser.newContext({
        viewport: wide,
        locale: language,
        timezoneId: 'UTC',
        reducedMotion: 'reduce',
      });
      contexts.add(context);
      context.setDefaultTimeout(20_000);
      return context.newPage();
    },

    async take(page, name) {
      const picture: Picture | undefined = pictures.find((each) => each.name === name);
      await mkdir(folder, { recursive: true });
      await page.setViewportSize(picture?.isNarrow === true ? narrow : wide);
      await page.evaluate('document.fonts.ready.then(() => undefined)');
      for (const theme of themes) {
        await page.emulateMedia({ colorScheme: theme });
        const { width, height } = await page.evaluate<{ width: number; height: number }>(
          '({ width: document.documentElement.clientWidth, height: document.documentElement.scrollHeight })',
        );
        const session = await page.context().newCDPSession(page);
        const { data } = await session.send('Page.captureScreenshot', {
          format: 'webp',
          quality,
          captureBeyondViewport: true,
          clip: {
            x: 0,
            y: 0,
            width,
            height: Math.min(picture?.height ?? height, highest),
            scale,
          },
        });
        await session.detach();
        await writeFile(join(folder, fileOf(name, theme)), Buffer.from(data, 'base64'));
      }
      await page.setViewportSize(wide);
    },

    async [Symbol.asyncDispose]() {
      for (const context of contexts) await context.close();
    },
  };
}
