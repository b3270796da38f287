import type { Logger } from 'pino';
import type { Lockouts } from '../../accounts/lockouts.ts';
import { text } from '../../texts/text.ts';
import type { AdminContext } from './admin-context.ts';
import { lockoutsPage } from './lockouts-page.ts';

/** `/hub/admin/lockouts`: who has to wait after failed logins. */
export function adminLockoutRoutes(
  admin: AdminContext,
  deps: { readonly lockouts: Lockouts; readonly log: Logger },
): void {
  const { pages } = admin;

  admin.get('/admin/lockouts', async (ctx, who) => {
    who.require('admin:users');
    const lockouts = await deps.lockouts.list();
    pages.send(ctx, lockoutsPage({ layout: await pages.formLayoutFor(ctx), lockouts }));
  });

  admin.post(
    '/admin/lockouts/lift',
    async (ctx, who, form) => {
      who.require('admin:users');
      const kind = form.get('kind') === 'address' ? 'address' : 'user';
      const subject = form.get('subject') ?? '';
      const isLifted = await deps.lockouts.lift({ kind, subject });
      if (isLifted) {
        const fields = { kind, subject: subject.slice(0, 100), by: who.login.user.name };
        deps.log.info(fields, 'lifted a lock-out');
      }
      pages.redirectWithNotice(ctx, pages.urls.adminLockouts, {
        kind: 'good',
        text: isLifted ? text`${subject} may try again.` : text`That lock-out has ended already.`,
      });
    },
    { needsRecentLogin: false },
  );
}
