import type { ThrottleRecord } from '../../authentication/login-throttle.ts';
import { actionForm } from '../elements/form.ts';
import { pageHead } from '../elements/layout.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { table } from '../elements/table.ts';
import { timeElement } from '../elements/time.ts';
import { type Html, html } from '../html.ts';
import { adminLayout } from './admin-layout.ts';

export interface LockoutsView {
  readonly layout: FormLayoutProps;
  readonly lockouts: readonly ThrottleRecord[];
}

/** Who has to wait after failed logins. Lifting sends `kind` and `subject`. */
export function lockoutsPage({ layout, lockouts }: LockoutsView): Html {
  return adminLayout(layout, {
    title: 'Lock-outs',
    tab: 'lockouts',
    body: html`${pageHead('Lock-outs', 'After too many failed logins a name or an address has to wait. It ends by itself.')}
${
  lockouts.length === 0
    ? html`<p class="empty">No one is locked out.</p>`
    : table(
        'Lock-outs',
        [
          { label: 'Who', style: 'name', cell: ({ subject }) => subject },
          { label: 'Kind', cell: ({ kind }) => (kind === 'user' ? 'User name' : 'Address') },
          { label: 'Failures', cell: ({ failures }) => failures },
          {
            label: 'Ends',
            cell: ({ lockedUntil }) => timeElement(new Date(lockedUntil), layout.now),
          },
          {
            label: 'Actions',
            style: 'end',
            cell: ({ kind, subject }) =>
              html`<div class="actions">${actionForm(layout, {
                action: layout.urls.adminLiftLockout,
                label: 'Lift',
                accessibleLabel: `Lift the lock-out of ${subject}`,
                style: 'small',
                fields: { kind, subject },
              })}</div>`,
          },
        ],
        lockouts,
      )
}`,
  });
}
