import { expect, test } from 'vitest';
import { sampleBranding } from '../../../../test/support/sample-branding.ts';
import { Language } from '../../../platform/texts/language.ts';
import { html, renderHtml } from '../html.ts';
import { createPageUrls } from '../page-urls.ts';
import { brand, initialsOf, siteFooter } from './brand.ts';
import type { LayoutProps } from './layout-props.ts';

const branding = sampleBranding((plausible) => plausible);
const layout: LayoutProps = {
  hubTitle: 'Lab',
  urls: createPageUrls('/'),
  assets: { url: (name) => `/hub/static/${name}` },
  now: new Date('2026-11-20T10:00:00Z'),
  branding,
};
const sourcesOf = (theme: LayoutProps['theme']): string[] =>
  [...String(brand({ ...layout, theme }, 24)).matchAll(/src(?:set)?="([^"]*)"/g)].map(
    ([, url = '']) => url.replace(/^.*own-(.*)\.[0-9a-f]{12}\.svg$/, '$1'),
  );

test('the logo follows the theme that the browser chose, else that of its system', () => {
  expect(sourcesOf('light')).toEqual(['logo']);
  expect(sourcesOf('dark')).toEqual(['logo-dark']);
  expect(sourcesOf('system')).toEqual(['logo-dark', 'logo']);
  expect(sourcesOf(undefined)).toEqual(['logo-dark', 'logo']);
});

test('a logo that is wide stands for the title, any other beside it', () => {
  expect(String(brand(layout, 24))).toContain('alt="Lab"');
  const { logo } = branding.current;
  const square = logo && { ...logo, width: 60 };
  const beside = String(
    brand({ ...layout, branding: { current: { ...branding.current, logo: square } } }, 24),
  );
  expect(beside).toContain('alt=""');
  expect(beside).toContain('<span>Lab</span>');
});

test('the footer is in the language of its reader', () => {
  const german = renderHtml(html`${siteFooter(layout)}`, new Language('de'));
  expect(german).toContain('Rechenzentrum');
  expect(german).toContain('<a href="/services/impressum/">Impressum</a>');
  const templatesIn = { de: { footer: ['<p>Unsere</p>'] } };
  const own = html`${siteFooter({ ...layout, branding: { current: { ...branding.current, templatesIn } } })}`;
  expect(renderHtml(own, new Language('de-AT'))).toMatch(
    /<footer[^>]*><div[^>]*><p>Unsere<\/p><\/div>/,
  );
  expect(renderHtml(own, new Language('fr'))).toContain('Computing centre');
  // Whoever it is not for has no empty frame.
  const alone = siteFooter({
    ...layout,
    branding: { current: { title: 'Lab', footerLinks: [], templates: {}, templatesIn } },
  });
  expect(renderHtml(html`${alone}`, new Language('fr'))).toBe('');
});

test("the operator's own footer stands in place of text and links", () => {
  expect(String(siteFooter(layout))).toContain('Terms of use');
  const own = { ...branding.current, templates: { footer: ['<p>Ours</p>'] } };
  const markup = String(siteFooter({ ...layout, branding: { current: own } }));
  expect(markup).toContain('<p>Ours</p>');
  expect(markup).not.toContain('Terms of use');
});

test.each([
  ['ada', undefined, 'a'],
  ['ada.lovelace', undefined, 'a'],
  ['ada', 'Ada Lovelace', 'AL'],
  ['ada', 'Ada', 'A'],
  ['ada', 'Ada King, Countess of Lovelace', 'AL'],
  ['42', undefined, '4'],
  ['x', '😀 !', 'x'],
  ['x', '山田 太郎', '山太'],
])('%s, called %s, has the initials %s', (name, displayName, initials) => {
  expect(initialsOf(name, displayName)).toBe(initials);
});
