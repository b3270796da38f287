import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type AssetName, loadAssets } from './assets.ts';

const staticUrl = '/hub/static/';

describe('assets', () => {
  test('an address names the content and may be kept for ever', async () => {
    const assets = await loadAssets({ staticUrl });
    const url = assets.url('site.css');
    expect(url).toMatch(/^\/hub\/static\/site\.[0-9a-f]{12}\.css$/);
    const asset = assets.find(url);
    expect(asset?.contentType).toBe('text/css; charset=utf-8');
    expect(asset?.cacheControl).toContain('immutable');
    expect(asset?.etag).toBe(`"${url.split('.')[1]}"`);
    expect(asset?.body.length).toBeGreaterThan(1000);
  });

  test('the stylesheet carries the accent colour, which changes its address', async () => {
    const assets = await loadAssets({ staticUrl });
    const builtIn = assets.url('site.css');
    assets.setAccentColour('#7a1f5c');
    expect(assets.url('site.css')).not.toBe(builtIn);
    expect(assets.find(builtIn)?.cacheControl).toBe('no-cache');
    const url = assets.url('site.css');
    expect(assets.find(url)?.body.toString()).toContain('--accent:light-dark(#7a1f5c');
    expect(url).not.toBe((await loadAssets({ staticUrl })).url('site.css'));
  });

  test('the stylesheet puts things before and behind, not left and right, for scripts of both directions', () => {
    const folder = join(import.meta.dirname, 'styles');
    const physical =
      /(?:margin|padding|border)-(?:left|right)\b|^\s*(?:left|right):|(?:float|clear|text-align): (?:left|right)/gm;
    const found = readdirSync(folder).flatMap((name) => {
      const css = readFileSync(join(folder, name), 'utf8');
      return (css.match(physical) ?? []).map((rule) => `${name}: ${rule.trim()}`);
    });
    expect(found).toEqual([]);
  });

  test('the stylesheet is sent without what only readers of the source need', async () => {
    const assets = await loadAssets({ staticUrl });
    const sent = assets.find('/hub/static/site.css')?.body.toString() ?? '';
    expect(sent).not.toMatch(/\/\*|^[ \t]|[{};,]\n|;}|, |\b0\./m);
    expect(sent.match(/\{/g)?.length).toBe(sent.match(/\}/g)?.length);
  });

  test('an address of an older content gives the present one, but not to be kept', async () => {
    const assets = await loadAssets({ staticUrl });
    expect(assets.find('/hub/static/site.000000000000.css')?.cacheControl).toBe('no-cache');
    expect(assets.find('/hub/static/site.css')?.cacheControl).toBe('no-cache');
  });

  test.for([
    '/hub/static/',
    '/hub/static/../../etc/passwd',
    '/hub/static/assets.ts',
    '/hub/static/tokens.css',
    '/site.css',
    '/hub/static/__proto__',
  ])('there is nothing at %s', async (path) => {
    expect((await loadAssets({ staticUrl })).find(path)).toBeUndefined();
  });

  test('every script and image of the folder is served', async () => {
    const assets = await loadAssets({ staticUrl });
    const names = readdirSync(join(import.meta.dirname)).filter((name) => /\.(js|svg)$/.test(name));
    expect(names.length).toBeGreaterThan(4);
    for (const name of names) {
      expect(assets.find(assets.url(name as AssetName)), name).toBeDefined();
    }
  });
});
