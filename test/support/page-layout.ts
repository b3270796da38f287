import type { FormLayoutProps } from '../../src/entrances/pages/elements/layout-props.ts';
import { createPageUrls } from '../../src/entrances/pages/page-urls.ts';

/** When the pages of tests are shown. */
export const shownAt = new Date('2026-11-20T10:00:00Z');

/** What a page is shown with to an administrator. */
export const adminPageLayout: FormLayoutProps = {
  hubTitle: 'Hub',
  urls: createPageUrls('/'),
  assets: { url: (name) => `/hub/static/${name}` },
  now: shownAt,
  csrfToken: 'csrf-token',
  user: { name: 'root', mayAdminister: true },
};
