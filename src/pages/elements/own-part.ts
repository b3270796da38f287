import { builtInLook, type Look } from '../../look/look.ts';
import type { Placeholder, TemplateName } from '../../look/template.ts';
import { type Html, type HtmlValue, html, unsafeHtml } from '../html.ts';
import type { LayoutProps } from './layout-props.ts';

/** How pages look now. */
export function lookOf({ look }: Pick<LayoutProps, 'look'>): Look {
  return look?.current ?? builtInLook;
}

/** The part of a page that the operator wrote; undefined where there is none. */
export function ownPart(
  layout: LayoutProps,
  name: TemplateName,
  further: Readonly<Partial<Record<Placeholder, HtmlValue>>> = {},
): Html | undefined {
  const template = lookOf(layout).templates[name];
  if (template === undefined) return undefined;
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
    return piece.isInAddress && typeof value === 'string' ? encodeURIComponent(value) : value;
  })}`;
}
