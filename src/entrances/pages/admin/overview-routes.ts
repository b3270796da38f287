import type { BoundPages } from '../forms/binding.ts';
import { overviewPage } from './overview-page.ts';

/** `/hub/admin`: how everything is. */
export function adminOverviewRoutes({ page, pages: { urls } }: BoundPages): void {
  page('/admin', 'viewOverview', ({ layout, model, ctx: { querystring } }) =>
    // Once the list of users was here, with what it shows in its address.
    querystring === ''
      ? overviewPage({ layout, ...model })
      : { redirect: `${urls.adminUsers}?${querystring}` },
  );
}
