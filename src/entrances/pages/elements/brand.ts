import { type Branding, builtInBranding, type Logo } from '../../../platform/branding/branding.ts';
import type { Placeholder, Template, TemplateName } from '../../../platform/branding/template.ts';
import {
  bestFor,
  joined,
  localizedPhrase,
  type Phrase,
  Text,
  text,
  written,
} from '../../../platform/texts/text.ts';
import { type Html, type HtmlValue, html, unsafeHtml } from '../html.ts';
import { icon } from './icons.ts';
import type { LayoutProps } from './layout-props.ts';
import { linkedText } from './linked-text.ts';

/** How pages look now. */
export function brandingOf({ branding }: Pick<LayoutProps, 'branding'>): Branding {
  return branding?.current ?? builtInBranding;
}

/** The part of a page that the operator wrote for its readers, or for those of its language. */
export function customFragment(
  layout: LayoutProps,
  name: TemplateName,
  {
    values = {},
    around = (part) => part,
    instead = html``,
  }: {
    /** Of placeholders that only this part knows. */
    readonly values?: Readonly<Partial<Record<Placeholder, HtmlValue>>>;
    /** Puts it into the page. */
    readonly around?: (part: Html) => Html;
    /** What stands there without it. */
    readonly instead?: Html;
  } = {},
): HtmlValue {
  const { templates, templatesIn } = brandingOf(layout);
  const ofAll = templates[name];
  const byTag = Object.fromEntries(
    Object.entries(templatesIn).flatMap(([tag, { [name]: own }]) => (own ? [[tag, own]] : [])),
  );
  const shown = (template: Template | undefined): Html =>
    template === undefined ? instead : around(fill(layout, template, values));
  if (Object.keys(byTag).length === 0) return shown(ofAll);
  return written((language) => joined([shown(bestFor(byTag, language) ?? ofAll)]));
}

function fill(
  layout: LayoutProps,
  template: Template,
  further: Readonly<Partial<Record<Placeholder, HtmlValue>>>,
): Html {
  const { urls, user } = layout;
  const values: Readonly<Partial<Record<Placeholder, HtmlValue>>> = {
    hub_title: layout.hubTitle,
    home_url: urls.home,
    login_url: urls.login,
    user_name: user?.name,
    user_display_name: user?.displayName ?? user?.name,
    request_id: layout.requestId,
    ...further,
  };
  return html`${template.map((piece) => {
    // Compiled from a file of the operator: only elements and attributes that `look/template.ts` admits.
    if (typeof piece === 'string') return unsafeHtml(piece);
    const value = values[piece.name];
    return piece.isInAddress ? inAddress(value) : value;
  })}`;
}

function inAddress(value: HtmlValue): HtmlValue {
  if (value instanceof Text) return written((language) => encodeURIComponent(value.in(language)));
  return typeof value === 'string' ? encodeURIComponent(value) : value;
}

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
