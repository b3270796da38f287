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
import type { LoginIcon } from '../../../plugin/host/authenticator.ts';
import { type Html, type HtmlValue, html, unsafeHtml } from '../html.ts';
import type { LayoutProps } from './layout-props.ts';
import { linkedText } from './linked-text.ts';

const shapes = {
  hub: '<circle cx="12" cy="12" r="8.6"/><g fill="currentColor" stroke="none"><circle cx="12" cy="12" r="3.3"/><circle cx="12" cy="3.4" r="2.5"/><circle cx="4.55" cy="16.3" r="2.5"/><circle cx="19.45" cy="16.3" r="2.5"/></g>',
  check: '<path d="M5 12.5l4.5 4.5L19 7.5"/>',
  caret: '<path d="M6.5 9.5l5.5 5.5 5.5-5.5"/>',
  search: '<circle cx="10.5" cy="10.5" r="6.2"/><path d="M15.2 15.200l5.300 5.300"/>',
  star: '<path d="M12 3.6l2.6 5.3 5.8.8-4.2 4.1 1 5.800-5.200-2.700-5.200 2.700 1-5.800-4.200-4.100 5.800-.8z"/>',
  done: '<circle cx="12" cy="12" r="9"/><path d="M8 12.4l2.8 2.8L16 9.6"/>',
  alert: '<path d="M12 4.2L21 19.5H3z"/><path d="M12 10v4.2M12 16.8v.2"/>',
  refused: '<circle cx="12" cy="12" r="9"/><path d="M12 7.5v5.5M12 16.3v.2"/>',
  github:
    '<circle cx="7" cy="5.5" r="2.2"/><circle cx="7" cy="18.5" r="2.2"/><circle cx="17" cy="8" r="2.2"/><path d="M7 7.7v8.6M17 10.2c0 3.6-10 1.6-10 6"/>',
  gitlab:
    '<circle cx="6.5" cy="5.5" r="2.2"/><circle cx="6.5" cy="18.5" r="2.2"/><circle cx="18" cy="14" r="2.2"/><path d="M6.5 7.7v8.6M6.5 7.7c0 4.2 3.8 6.3 9.3 6.3"/>',
  google: '<path d="M19.3 7.2A8.7 8.7 0 1 0 20.7 12H12.6"/>',
  microsoft: '<path d="M4 4h7v7H4zM13 4h7v7h-7zM4 13h7v7H4zM13 13h7v7h-7z"/>',
  keycloak:
    '<path d="M7.2 3.8h9.6L21.6 12l-4.8 8.2H7.2L2.4 12z"/><circle cx="12" cy="10.4" r="1.9"/><path d="M12 12.3v4"/>',
  okta: '<circle cx="12" cy="12" r="7.6" stroke-width="3.8"/>',
  auth0:
    '<path d="M12 3l7.5 2.4v6.1c0 4.2-2.8 7.4-7.5 9.5-4.7-2.1-7.5-5.3-7.5-9.5V5.4z"/><path d="M12 8.2l1.2 2.5 2.7.3-2 1.900.5 2.700-2.400-1.300-2.400 1.300.5-2.700-2-1.900 2.700-.3z"/>',
  generic:
    '<path d="M13.5 4H18.5a1.5 1.5 0 0 1 1.5 1.5v13a1.5 1.5 0 0 1-1.5 1.5H13.5M4 12h10.5M10.700 8l4 4-4 4"/>',
} as const satisfies Record<
  LoginIcon | 'hub' | 'check' | 'star' | 'search' | 'caret' | 'done' | 'alert' | 'refused',
  string
>;

/** Draws one of the hub's own line icons, hidden from screen readers: text always stands beside it. */
export function icon(name: keyof typeof shapes, size = 20): Html {
  return html`<svg width="${size}" height="${size}" viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="1.8" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">${unsafeHtml(shapes[name])}</svg>`;
}

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
  return html`${template.map((segment) => {
    // Compiled from a file of the operator: only elements and attributes that `look/template.ts` admits.
    if (typeof segment === 'string') return unsafeHtml(segment);
    const value = values[segment.name];
    return segment.isInAddress ? inAddress(value) : value;
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

/** Up to two letters that stand for a user. */
export function initialsOf(userName: string, displayName: string | undefined): string {
  const words = (displayName ?? userName).split(/[\s._-]+/u).filter((word) => /^\p{L}/u.test(word));
  const [first] = words;
  if (first === undefined) return String.fromCodePoint(userName.codePointAt(0) ?? 63);
  const last = words.length > 1 && displayName !== undefined ? words.at(-1) : undefined;
  return [first, last].map((word) => [...(word ?? '')][0] ?? '').join('');
}
