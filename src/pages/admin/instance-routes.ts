import type { InstanceOverview } from '../../instances/instance-overview.ts';
import type { AdminContext } from './admin-context.ts';
import { instancesPage } from './instances-page.ts';

/** `/hub/admin/instances`: the processes that are the hub together. */
export function adminInstanceRoutes(
  admin: AdminContext,
  { overview }: { readonly overview: InstanceOverview },
): void {
  const { pages } = admin;
  admin.get('/admin/instances', async (ctx, who) => {
    who.require('read:hub');
    const instances = await overview.list();
    pages.send(ctx, instancesPage({ layout: await pages.formLayoutFor(ctx), instances }));
  });
}
