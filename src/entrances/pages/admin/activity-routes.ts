import type { BoundPages } from '../forms/binding.ts';
import { activityPage } from './activity-page.ts';

/** `/hub/admin/activity`: the audit log. */
export function adminActivityRoutes({ page }: BoundPages): void {
  page('/admin/activity', 'viewActivity', ({ layout, model, may }) => {
    const { name = '' } = model.about ?? {};
    return activityPage({
      layout,
      ...model,
      may: { endSessions: may('endSessions', { name }), suspend: may('suspendUser', { name }) },
    });
  });
}
