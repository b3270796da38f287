import { describe, expect, test } from 'vitest';
import { samplePages } from '../../../test/support/sample-pages.ts';
import { Language } from '../../platform/texts/language.ts';
import { loadLanguages } from '../../platform/texts/languages.ts';
import { loadAssets } from './assets/assets.ts';
import { secretFields } from './fill-in.ts';
import { renderHtml } from './html.ts';

const assets = await loadAssets({ staticUrl: '/hub/static/' });
const render = (text?: (plausible: string) => string): ReadonlyMap<string, string> =>
  new Map(Object.entries(samplePages(assets, text)).map(([name, page]) => [name, String(page)]));
const pages = render();

interface Tag {
  readonly name: string;
  readonly attributes: ReadonlyMap<string, string>;
  readonly isEnd: boolean;
  readonly at: number;
}

const tagPattern = /<(\/?)(!?[a-z][a-z0-9]*)((?:\s+[a-zA-Z-]+(?:="[^"]*")?)*)\s*\/?>/g;

function tagsOf(markup: string): Tag[] {
  return Array.from(
    markup.matchAll(tagPattern),
    ({ 1: end, 2: name = '', 3: rest = '', index }) => ({
      name,
      isEnd: end === '/',
      at: index,
      attributes: new Map(
        Array.from(rest.matchAll(/([a-zA-Z-]+)(?:="([^"]*)")?/g), ([, key = '', value = '']) => [
          key,
          value,
        ]),
      ),
    }),
  );
}

/** Tags and attribute names without any value: what hostile text must not be able to change. */
const skeletonOf = (markup: string): string[] =>
  tagsOf(markup).map(
    ({ name, isEnd, attributes }) =>
      `${isEnd ? '/' : ''}${name} ${[...attributes.keys()].join(' ')}`,
  );

const hostileText = `"'><script>alert(1)</script><img src=x onerror=alert(1)>&amp;\${x}`;
const hostilePages = render((plausible) => plausible + hostileText);
const scriptedPages = render(() => 'javascript:alert(1)');

describe.each([...pages.keys()])('the page %s', (name) => {
  const markup = pages.get(name) ?? '';
  const tags = tagsOf(markup);
  const find = (tagName: string) => tags.filter((tag) => tag.name === tagName && !tag.isEnd);
  const ids = tags.map(({ attributes }) => attributes.get('id')).filter((id) => id !== undefined);

  test('is a document with one heading, a title and the stylesheet', () => {
    expect(markup.startsWith('<!doctype html>\n<html lang="en" dir="ltr">')).toBe(true);
    expect(find('h1')).toHaveLength(1);
    expect(/<title>.+ · Hub<\/title>/.test(markup)).toBe(true);
    expect(markup).toContain(assets.url('site.css'));
    expect(markup.replace(tagPattern, '')).not.toMatch(/[<>]/);
  });

  test('closes every element that it opens', () => {
    const empty = new Set([
      '!doctype',
      'meta',
      'link',
      'input',
      'br',
      'wbr',
      'img',
      'source',
      'path',
      'circle',
    ]);
    const open: string[] = [];
    for (const tag of tags) {
      if (empty.has(tag.name)) continue;
      if (tag.isEnd) expect(open.pop()).toBe(tag.name);
      else open.push(tag.name);
    }
    expect(open).toEqual([]);
  });

  test('escapes whatever comes from outside', () => {
    const hostile = hostilePages.get(name) ?? '';
    expect(skeletonOf(hostile)).toEqual(skeletonOf(markup));
    expect(hostile.replace(tagPattern, '')).not.toMatch(/[<>]/);
  });

  test('links to no script', () => {
    const hostile = scriptedPages.get(name) ?? '';
    for (const { attributes } of tagsOf(hostile)) {
      for (const key of ['href', 'src', 'action', 'formaction', 'data-ready-url']) {
        expect(attributes.get(key)?.startsWith('javascript:') ?? false, key).toBe(false);
      }
    }
  });

  test('holds no script, style or handler of its own, as the content security policy demands', () => {
    expect(find('style')).toEqual([]);
    for (const { attributes } of find('script'))
      expect(attributes.get('src')).toMatch(/^\/hub\/static\//);
    for (const { attributes } of tags) {
      for (const key of attributes.keys()) expect(key).not.toMatch(/^(on.*|style)$/);
    }
  });

  test('carries the CSRF token in each form that changes something', () => {
    for (const form of find('form')) {
      if (form.attributes.get('method') === 'get') continue;
      expect(form.attributes.get('method')).toBe('post');
      const inside = markup.slice(form.at, markup.indexOf('</form>', form.at));
      expect(inside).toContain('<input type="hidden" name="_csrf" value="csrf-token">');
    }
  });

  test('has a button in each form that is sent', () => {
    for (const { at } of find('form')) {
      const inside = markup.slice(at, markup.indexOf('</form>', at));
      expect(inside).toMatch(/<button(?![^>]* type="button")|<input[^>]* type="submit"/);
    }
  });

  test('names nothing that has no role to be named (ARIA 1.2 §5.2.8.6)', () => {
    for (const name of ['code', 'p', 'b', 'strong', 'em', 'span', 'div']) {
      for (const { attributes } of find(name)) {
        expect(!attributes.has('aria-label') || attributes.has('role'), name).toBe(true);
      }
    }
  });

  test('labels every field', () => {
    const labelled = new Set(find('label').map(({ attributes }) => attributes.get('for')));
    const fields = [...find('input'), ...find('select'), ...find('textarea')].filter(
      ({ attributes }) =>
        attributes.get('type') !== 'hidden' && attributes.get('aria-hidden') !== 'true',
    );
    for (const { attributes, at } of fields) {
      const isInLabel = markup.lastIndexOf('<label', at) > markup.lastIndexOf('</label>', at);
      expect(isInLabel || labelled.has(attributes.get('id')), attributes.get('name')).toBe(true);
    }
  });

  test('points only to what exists, and gives no id twice', () => {
    expect(new Set(ids).size).toBe(ids.length);
    const known = new Set(ids);
    for (const { attributes } of tags) {
      for (const key of [
        'for',
        'aria-describedby',
        'aria-labelledby',
        'aria-controls',
        'popovertarget',
        'data-copy',
      ]) {
        for (const id of attributes.get(key)?.split(' ') ?? [])
          expect(known.has(id), `${key} ${id}`).toBe(true);
      }
    }
  });

  test('names every button and link', () => {
    for (const { at, name: tagName, attributes } of [...find('button'), ...find('a')]) {
      const inside = markup.slice(markup.indexOf('>', at) + 1, markup.indexOf(`</${tagName}>`, at));
      expect(inside.replace(tagPattern, '').trim() || attributes.get('aria-label')).not.toBe('');
    }
  });

  test('has one primary action, unless there is nothing to do but wait or look', () => {
    const onlyToLookAt = [
      'search',
      'search-nothing',
      'admin-batch',
      'admin-overview',
      'admin-servers',
      'admin-overview-well',
      'admin-users-to-read',
      'home-nothing',
      'services',
      'services-none',
      'admin-instances',
      'admin-lockouts',
      'admin-keys',
      'usage',
      'admin-homes',
      'admin-homes-none',
      'admin-usage',
      'admin-usage-none',
      'usage-none',
      'admin-activity',
      'spawn-pending',
      'stop-pending',
      'share-refused',
    ];
    const primary = tags.filter(({ attributes }) =>
      attributes.get('class')?.split(' ').includes('primary'),
    );
    expect(primary).toHaveLength(onlyToLookAt.includes(name) ? 0 : 1);
  });
});

test('the script of a page is there when the page needs it', () => {
  const needs = {
    'data-copy=': 'copy-button',
    'data-reveal=': 'password-toggle',
    'data-progress-url=': 'progress',
    'data-retry-seconds=': 'retry',
  };
  for (const [name, markup] of pages) {
    for (const [mark, script] of Object.entries(needs)) {
      expect(markup.includes(`/static/${script}.`), `${name} ${script}`).toBe(
        markup.includes(mark),
      );
    }
  }
});

test('what a page takes for a secret is none of what is kept for after the next login', () => {
  const secrets = [...pages.values()]
    .flatMap(tagsOf)
    .filter(
      ({ attributes }) =>
        attributes.get('type') === 'password' || attributes.get('autocomplete') === 'one-time-code',
    )
    .map(({ attributes }) => attributes.get('name') ?? '');
  const names = [...new Set(secrets)];
  expect(names).toContain('code');
  expect(names.filter((name) => !secretFields.has(name))).toEqual([]);
});

test('pages run in the direction of their language', () => {
  const page = samplePages(assets)['login'];
  if (page === undefined) throw new Error('there is no sample of the login page');
  const headOf = (tag: string) => renderHtml(page, new Language(tag)).split('\n', 2)[1];
  expect(headOf('ar')).toBe('<html lang="ar" dir="rtl">');
  expect(headOf('he-IL')).toBe('<html lang="he-IL" dir="rtl">');
  expect(headOf('pa-Arab')).toBe('<html lang="pa-Arab" dir="rtl">');
  expect(headOf('pa')).toBe('<html lang="pa" dir="ltr">');
});

const german = (await loadLanguages()).find('de');

test.each(Object.entries(samplePages(assets)))(
  'the page %s is the same in German, in other words',
  (name, page) => {
    const markup = renderHtml(page, german);
    expect(markup.startsWith('<!doctype html>\n<html lang="de" dir="ltr">')).toBe(true);
    expect(skeletonOf(markup)).toEqual(skeletonOf(pages.get(name) ?? ''));
    expect(markup.replace(tagPattern, '')).not.toMatch(/[<>]/);
  },
);
