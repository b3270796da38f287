import type { Context } from 'koa';
import type { Text } from '../../../platform/texts/text.ts';
import type { FormLayoutProps, PageNotice } from '../elements/layout-props.ts';
import { Html } from '../html.ts';
import type { PageContext } from '../page-context.ts';

/** What follows a form: another page, with what it says; a page in its place; or a file. */
export type Next =
  | { readonly to: string; readonly say: Text; readonly kind?: PageNotice['kind'] }
  | { readonly redirect: string }
  | { readonly show: (layout: FormLayoutProps) => Html; readonly status?: number }
  | { readonly file: { readonly name: string; readonly type: string; readonly text: string } };

/** Answers a form. */
export async function goTo(pages: PageContext, ctx: Context, next: Next | Html): Promise<void> {
  if (next instanceof Html) {
    pages.send(ctx, next);
  } else if ('show' in next) {
    pages.send(ctx, next.show(await pages.formLayoutFor(ctx)), next.status);
  } else if ('file' in next) {
    ctx.attachment(next.file.name);
    ctx.type = next.file.type;
    ctx.set('Cache-Control', 'no-store');
    ctx.body = next.file.text;
  } else if ('redirect' in next) {
    ctx.redirect(next.redirect);
    ctx.status = 303;
  } else {
    const { to, say, kind = 'good' } = next;
    pages.redirectWithNotice(ctx, to, { kind, text: say });
  }
}
