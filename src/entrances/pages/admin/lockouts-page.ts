import type { ThrottleRecord } from '../../../identity/authentication/throttle-counters.ts';
import { text } from '../../../platform/texts/text.ts';
import { actionForm } from '../elements/form.ts';
import { adminLayout, pageHead } from '../elements/layout.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { timeElement } from '../elements/quantity.ts';
import { table } from '../elements/table.ts';
import { type Html, html } from '../html.ts';

export interface LockoutsView {
  readonly layout: FormLayoutProps;
  readonly lockouts: readonly ThrottleRecord[];
}

/** Who has to wait after failed logins. Lifting sends `kind` and `subject`. */
export function lockoutsPage({ layout, lockouts }: LockoutsView): Html {
  return adminLayout(layout, {
    title: text`Locked out`,
    tab: 'lockouts',
    body: html`${pageHead(text`Locked out`, text`Usernames and IP addresses blocked after too many failed logins. Blocks expire automatically.`)}
${
  lockouts.length === 0
    ? html`<p class="empty">${text`No one is locked out.`}</p>`
    : table(
        text`Locked out`,
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
                label: text`Unlock`,
                accessibleLabel: text`Unlock ${subject}`,
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
