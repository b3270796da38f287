import type { InstanceOverview } from '../../instances/instance-overview.ts';
import type { LoadReader } from '../../instances/load-reader.ts';
import { loadKeys } from '../../metrics/load-history.ts';
import { spanIn } from '../elements/load-plots.ts';
import type { AdminContext } from './admin-context.ts';
import { instancesPage } from './instances-page.ts';

/** `/hub/admin/instances`: the processes that are the hub together. */
export function adminInstanceRoutes(
  admin: AdminContext,
  {
    overview,
    loads,
  }: {
    readonly overview: InstanceOverview;
    readonly loads: Pick<LoadReader, 'readEach'>;
  },
): void {
  const { pages } = admin;
  admin.get('/admin/instances', async (ctx, who) => {
    who.require('read:hub');
    const span = spanIn(ctx.query);
    const [instances, each, layout] = await Promise.all([
      overview.list(),
      loads.readEach(loadKeys.instance, span),
      pages.formLayoutFor(ctx),
    ]);
    pages.send(ctx, instancesPage({ layout, instances, loads: each, span }));
  });
}
