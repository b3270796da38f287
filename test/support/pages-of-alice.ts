import type { FormLayoutProps } from '../../src/entrances/pages/elements/layout-props.ts';
import type {
  ServerSummary,
  ShownServerState,
} from '../../src/entrances/pages/servers/server-summary.ts';
import { adminPageLayout, shownAt } from './page-layout.ts';

/** The moment of the pages of alice. */
export const now = shownAt;

/** The layout of a page that alice sees. */
export const layout: FormLayoutProps = {
  ...adminPageLayout,
  user: { name: 'alice', mayAdminister: false },
};

/** The default server of alice in a state. */
export const server = (
  state: ShownServerState,
  more: Partial<ServerSummary> = {},
): ServerSummary => ({ userName: 'alice', name: '', state, url: '/user/alice/', ...more });
