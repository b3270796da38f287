import type { BoundPages } from '../forms/binding.ts';
import { instancesPage } from './instances-page.ts';

/** `/hub/admin/instances`: the processes that are the hub together. */
export function adminInstanceRoutes({ page }: BoundPages): void {
  page('/admin/instances', 'viewInstances', ({ layout, model }) =>
    instancesPage({ layout, ...model }),
  );
}
