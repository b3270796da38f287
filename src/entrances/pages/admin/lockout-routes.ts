import { text } from '../../../platform/texts/text.ts';
import type { BoundPages } from '../forms/binding.ts';
import { lockoutsPage } from './lockouts-page.ts';

/** `/hub/admin/lockouts`: who has to wait after failed logins. */
export function adminLockoutRoutes({ page, form, pages: { urls } }: BoundPages): void {
  page('/admin/lockouts', 'viewLockouts', ({ layout, model }) =>
    lockoutsPage({ layout, lockouts: model }),
  );

  form('/admin/lockouts/lift', 'liftLockout', {
    query: (sent) => ({ kind: sent.get('kind') ?? '', subject: sent.get('subject') ?? '' }),
    done: ({ sent }) => ({
      to: urls.adminLockouts,
      say: text`${sent.get('subject') ?? ''} is unlocked.`,
    }),
    isGone: () => ({ to: urls.adminLockouts, say: text`That lock-out has ended already.` }),
  });
}
