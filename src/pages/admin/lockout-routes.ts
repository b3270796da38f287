import type { Logger } from 'pino';
import type { Lockouts } from '../../accounts/lockouts.ts';
import type { AdminKit } from './admin-kit.ts';
import { lockoutsPage } from './lockouts-page.ts';

/** `/hub/admin/lockouts`: who has to wait after failed logins. */
export function adminLockoutRoutes(
  admin: AdminKit,
  parts: { readonly lockouts: Lockouts; readonly log: Logger },
): void {
  const { kit } = admin;

  admin.get('/admin/lockouts', async (ctx, who) => {
    who.require('admin:users');
    const lockouts = await parts.lockouts.list();
    kit.send(ctx, lockoutsPage({ frame: await kit.formFrame(ctx), lockouts }));
  });

  admin.post('/admin/lockouts/lift', async (ctx, who, form) => {
    who.require('admin:users');
    const kind = form.get('kind') === 'address' ? 'address' : 'user';
    const subject = form.get('subject') ?? '';
    const isLifted = await parts.lockouts.lift({ kind, subject });
    if (isLifted) {
      const fields = { kind, subject: subject.slice(0, 100), by: who.login.user.name };
      parts.log.info(fields, 'lifted a lock-out');
    }
    kit.redirectWithNotice(ctx, kit.urls.adminLockouts, {
      kind: 'good',
      text: isLifted ? `${subject} may try again.` : 'That lock-out has ended already.',
    });
  });
}
