import { type Branding, builtInBranding } from '../../../platform/branding/branding.ts';
import type { Placeholder, Template, TemplateName } from '../../../platform/branding/template.ts';
import { bestFor } from '../../../platform/texts/localized-text.ts';
import { joined, Text, written } from '../../../platform/texts/text.ts';
import { type Html, type HtmlValue, html, unsafeHtml } from '../html.ts';
import type { LayoutProps } from './layout-props.ts';

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
