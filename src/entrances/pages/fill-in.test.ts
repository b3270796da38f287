import { describe, expect, test } from 'vitest';
import { samplePages } from '../../../test/support/sample-pages.ts';
import { loadAssets } from './assets/assets.ts';
import { fillIn } from './fill-in.ts';

const pages = Object.entries(samplePages(await loadAssets({ staticUrl: '/hub/static/' }))).map(
  ([name, page]) => [name, String(page)] as const,
);

/** Forms of a page into which something is typed: where they go, and what they send. */
function formsOf(page: string) {
  return [...page.matchAll(/<form[^>]*method="post"[\s\S]*?<\/form>/g)].flatMap(([form]) => {
    const action = /action="([^"?#]*)/.exec(form)?.[1] ?? '';
    const fields = [...form.matchAll(/<(?:textarea|input)\b[^>]*>/g)].map(([field]) => ({
      name: /name="([^"]*)"/.exec(field)?.[1],
      value: /value="([^"]*)"/.exec(field)?.[1] ?? '',
      type: field.startsWith('<textarea') ? 'text' : (/type="([^"]*)"/.exec(field)?.[1] ?? 'text'),
    }));
    const typed = fields.find(({ type, name }) => type === 'text' && name !== undefined);
    if (typed?.name === undefined) return [];
    const values = new URLSearchParams();
    for (const { type, name, value } of fields) {
      if (type === 'hidden' && name !== undefined) values.append(name, value);
    }
    values.set(typed.name, 'Typed & <kept>');
    return [{ action, values }];
  });
}

describe.each(pages)('on the page %s', (_, page) => {
  test('each form can be filled in again', async () => {
    for (const { action, values } of formsOf(page)) {
      const filled = await fillIn(page, action, values);
      expect(filled, action).toMatch(/Typed &amp; (?:<|&lt;)kept/);
    }
  });
});

const form = `<!doctype html>
<html><head><title>x</title></head><body><details><form method="post" action="/hub/x"><input type="hidden" name="user" value="ada">
<input name="name" value="old"><input name="name"><input type="password" name="password"><textarea name="note">old</textarea>
<input type="checkbox" name="may" value="read" checked><input type="checkbox" name="may" value="write">
<select name="kind"><option value="a" selected>A</option><option>b</option></select><button formaction="/hub/y">y</button></form></details></body></html>`;

test('each control takes what was sent for it, a password and a hidden field nothing', async () => {
  const values = new URLSearchParams(
    'user=ada&name=one&name=two&password=secret&note=a%0Ab&may=write&kind=b',
  );
  const filled = await fillIn(form, '/hub/y', values);
  expect(filled).toContain('<details open="">');
  expect(filled).toContain('<input name="name" value="one"><input name="name" value="two">');
  expect(filled).toContain('<input type="password" name="password"><textarea name="note">a\nb<');
  expect(filled).toContain('value="read"><input type="checkbox" name="may" value="write" checked');
  expect(filled).toContain('<option value="a">A</option><option selected="">b</option>');
  expect(filled.startsWith('<!DOCTYPE html>')).toBe(true);
});

test('a form about something else, or to somewhere else, stays as it is', async () => {
  expect(await fillIn(form, '/hub/y', new URLSearchParams('user=bob&name=one'))).toBe(form);
  expect(await fillIn(form, '/hub/z', new URLSearchParams('user=ada&name=one'))).toBe(form);
});
