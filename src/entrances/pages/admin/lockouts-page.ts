import type { ThrottleRecord } from '../../../identity/authentication/throttle-counters.ts';
import { text } from '../../../platform/texts/text.ts';
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
    title: text`Lock-outs`,
    tab: 'lockouts',
    body: html`${pageHead(text`Lock-outs`, text`After too many failed logins a name or an address has to wait. It ends by itself.`)}
${
  lockouts.length === 0
    ? html`<p class="empty">${text`No one is locked out.`}</p>`
    : table(
        text`Lock-outs`,
        [
          { label: text`Who`, style: 'name', cell: ({ subject }) => subject },
          {
            label: text`Kind`,
            cell: ({ kind }) => (kind === 'user' ? text`User name` : text`Address`),
          },
          { label: text`Failures`, cell: ({ failures }) => failures },
          {
            label: text`Ends`,
            cell: ({ lockedUntil }) => timeElement(new Date(lockedUntil), layout.now),
          },
          {
            label: text`Actions`,
            style: 'end',
            cell: ({ kind, subject }) =>
              html`<div class="actions">${actionForm(layout, {
                action: layout.urls.adminLiftLockout,
                label: text`Lift`,
                accessibleLabel: text`Lift the lock-out of ${subject}`,
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
