import type { ListedKey } from '../../../identity/oauth/keys/signing-keys.ts';
import { text } from '../../../platform/texts/text.ts';
import { actionForm } from '../elements/form.ts';
import { adminLayout, pageHead } from '../elements/layout.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { timeElement } from '../elements/quantity.ts';
import { table } from '../elements/table.ts';
import { type Html, html } from '../html.ts';

export interface KeysView {
  readonly layout: FormLayoutProps;
  readonly keys: readonly ListedKey[];
}

const stateLabels: Readonly<Record<ListedKey['state'], ReturnType<typeof text>>> = {
  next: text`Signs next`,
  active: text`Signs now`,
  former: text`Until its tokens end`,
  lost: text`Lost`,
};

/** The keys that sign ID tokens. */
export function keysPage({ layout, keys }: KeysView): Html {
  const { urls, now } = layout;
  return adminLayout(layout, {
    title: text`Keys`,
    tab: 'keys',
    body: html`${pageHead(text`Keys`, text`With these the hub signs the ID tokens by which apps log users in. It replaces them by itself.`)}
${
  keys.length === 0
    ? html`<p class="empty">${text`There is no key yet. The hub makes them a minute after its first start.`}</p>`
    : table(
        text`Keys`,
        [
          { label: text`Key`, style: 'name', cell: ({ id }) => html`<code>${id}</code>` },
          { label: text`Algorithm`, cell: ({ algorithm }) => html`<code>${algorithm}</code>` },
          { label: text`State`, cell: ({ state }) => stateLabels[state] },
          { label: text`From`, cell: ({ activeFrom }) => timeElement(activeFrom, now) },
          { label: text`Ends`, cell: ({ endsAt }) => endsAt && timeElement(endsAt, now) },
          {
            label: text`Actions`,
            style: 'end',
            cell: ({ id }) =>
              html`<div class="actions"><a class="button small" href="${urls.adminRevokeKey(id)}" aria-label="${text`Revoke ${id}`}">${text`Revoke`}</a></div>`,
          },
        ],
        keys,
      )
}
${keys.some(({ state }) => state === 'lost') && html`<p class="soft">${text`Lost keys were sealed with another cookie secret. Put that behind the new one in Hub.cookie_secret to have them back.`}</p>`}
${actionForm(layout, { action: urls.adminRotateKeys, label: text`Make the next keys now` })}`,
  });
}
