import type { Logo } from '../../../platform/branding/branding.ts';
import { localizedPhrase } from '../../../platform/texts/localized-text.ts';
import { type Phrase, text } from '../../../platform/texts/text.ts';
import { type Html, type HtmlValue, html } from '../html.ts';
import { brandingOf, customFragment } from './custom-fragment.ts';
import { icon } from './icons.ts';
import type { LayoutProps } from './layout-props.ts';
import { linkedText } from './linked-text.ts';

/** One that is so much wider than high has the name in it. */
const wordMarkRatio = 2;

/** The hub's mark and title: what the link at the head of a page shows. */
export function brand(layout: LayoutProps, markSize: number): Html {
  const { logo } = brandingOf(layout);
  const { hubTitle } = layout;
  if (logo === undefined) return html`${icon('hub', markSize)}<span>${hubTitle}</span>`;
  const isWordMark = logo.width >= wordMarkRatio * logo.height;
  return isWordMark
    ? logoImage(layout, logo, hubTitle)
    : html`${logoImage(layout, logo, '')}<span>${hubTitle}</span>`;
}

function logoImage({ assets, theme = 'system' }: LayoutProps, logo: Logo, alt: Phrase): Html {
  const { darkFile = logo.file, width, height } = logo;
  const file = theme === 'dark' ? darkFile : logo.file;
  const image = html`<img class="logo" src="${assets.url(file)}" alt="${alt}" width="${Math.round(width)}" height="${Math.round(height)}">`;
  if (theme !== 'system' || darkFile === logo.file) return image;
  return html`<picture><source srcset="${assets.url(darkFile)}" media="(prefers-color-scheme: dark)">${image}</picture>`;
}

/** The end of every page: what the operator says there. */
export function siteFooter(layout: LayoutProps): HtmlValue {
  const { footerText, footerLinks, termsUrl } = brandingOf(layout);
  const links = [
    ...footerLinks.map(({ title, url }) => ({ title: localizedPhrase(title), url })),
    ...(termsUrl === undefined ? [] : [{ title: text`Terms of use`, url: termsUrl }]),
  ];
  const around = (content: Html) =>
    html`<footer class="site-footer"><div class="inner">${content}</div></footer>\n`;
  const builtIn = html`${footerText !== undefined && html`<p>${linkedText(footerText)}</p>`}${
    links.length > 0 &&
    html`<ul>${links.map(({ title, url }) => html`<li><a href="${localizedPhrase(url)}">${title}</a></li>`)}</ul>`
  }`;
  const isEmpty = footerText === undefined && links.length === 0;
  return customFragment(layout, 'footer', { around, instead: isEmpty ? html`` : around(builtIn) });
}
