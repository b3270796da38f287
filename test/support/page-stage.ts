import type { Browser, Page } from 'playwright-core';
import { loadAssets } from '../../src/entrances/pages/assets/assets.ts';
import { renderHtml } from '../../src/entrances/pages/html.ts';
import { loadLanguages } from '../../src/platform/texts/languages.ts';
import { sampleBrandingFiles } from './sample-branding.ts';
import { samplePages } from './sample-pages.ts';

// Answered by the browser's own interception: no request leaves it.
const address = 'http://hub.test/';

/** Tags of the languages that come with the hub. */
export const stageLanguages = ['en', 'de'] as const;

export interface Stage {
  /** Of the browser, for what a test asks of it itself. */
  readonly page: Page;
  /** Sample pages as HTML, by name; `text` stands in for each text from outside, see samplePages. */
  pages(
    language: (typeof stageLanguages)[number],
    text?: (plausible: string) => string,
  ): ReadonlyMap<string, string>;
  /** Loads a page, without its scripts by default, which would follow what is not there. */
  open(html: string, scripts?: 'with scripts'): Promise<void>;
  /**
   * Shows pages one after another, what is folded in them unfolded. Pages that differ in nothing but title, language
   * and body take turns in one document: loading each of them would take longer than all that is asked of them.
   */
  showEach(
    pages: ReadonlyMap<string, string>,
    visit: (name: string) => Promise<void>,
    /** Run in each new document. */
    script?: string,
  ): Promise<void>;
}

/** A window that shows sample pages with their styles. */
export async function createStage(browser: Browser): Promise<Stage> {
  const assets = await loadAssets({ staticUrl: '/hub/static/' });
  assets.setCustomFiles(sampleBrandingFiles);
  const languages = await loadLanguages();
  const page = await browser.newPage({ reducedMotion: 'reduce' });
  let opened = '';
  await page.route('**', async (route) => {
    const { pathname } = new URL(route.request().url());
    const { body, contentType } = assets.find(pathname) ?? {
      body: pathname === '/' ? opened : '',
      contentType: 'text/html; charset=utf-8',
    };
    await route.fulfill({ body, contentType });
  });

  async function open(html: string, scripts?: 'with scripts'): Promise<void> {
    opened = scripts === undefined ? html.replaceAll(/<script\b[^>]*>\s*<\/script>/g, '') : html;
    await page.goto(address);
  }

  return {
    page,
    open,
    pages: (language, text) =>
      new Map(
        Object.entries(samplePages(assets, text)).map(([name, sample]) => [
          name,
          renderHtml(sample, languages.find(language)),
        ]),
      ),
    showEach: async (pages, visit, script) => {
      for (const alike of Map.groupBy(pages, ([, html]) => stylesOf(html)).values()) {
        await open(alike[0]?.[1] ?? '');
        if (script !== undefined) await page.evaluate(script);
        for (const [name, html] of alike) {
          await page.evaluate(turnTo(html));
          await visit(name);
        }
      }
    },
  };
}

function stylesOf(html: string): string {
  return html.match(/<link rel="(?:stylesheet|icon)"[^>]*>/g)?.join('') ?? '';
}

/** A script that shows what this page holds in the document of another. */
function turnTo(html: string): string {
  const [, language, title, bodyClass = '', body] =
    /<html lang="([^"]+)"[\s\S]*<title>([\s\S]*)<\/title>[\s\S]*<body(?: class="([^"]*)")?>([\s\S]*)<\/body>/.exec(
      html,
    ) ?? [];
  if (body === undefined) throw new Error('Not a whole page');
  return `{
    document.documentElement.lang = ${JSON.stringify(language)};
    document.title = ${JSON.stringify(title)};
    document.body.className = ${JSON.stringify(bodyClass)};
    document.body.innerHTML = ${JSON.stringify(body)};
    for (const folded of document.querySelectorAll('details')) folded.open = true;
    scrollTo(0, 0);
  }`;
}
