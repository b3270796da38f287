import type { BoundPages } from '../forms/binding.ts';
import { ownUsagePage } from './usage-page.ts';

/** `/hub/usage`: what the person's servers used. */
export function usagePageRoutes({ page }: BoundPages): void {
  page('/usage', 'viewOwnUsage', ({ layout, model }) => ownUsagePage({ layout, ...model }));
}
