import type { FormLayoutProps } from '../../src/pages/elements/layout-props.ts';
import { createPageUrls } from '../../src/pages/page-urls.ts';
import type { ServerSummary, ShownServerState } from '../../src/pages/servers/server-summary.ts';

/** The moment of the pages of alice. */
export const now = new Date('2026-11-20T10:00:00Z');

/** The layout of a page that alice sees. */
export const layout: FormLayoutProps = {
  hubTitle: 'Hub',
  urls: createPageUrls('/'),
  assets: { url: (name) => `/hub/static/${name}` },
  now,
  csrfToken: 'csrf-token',
  user: { name: 'alice', mayAdminister: false },
};

/** The default server of alice in a state. */
export const server = (
  state: ShownServerState,
  more: Partial<ServerSummary> = {},
): ServerSummary => ({ userName: 'alice', name: '', state, url: '/user/alice/', ...more });
