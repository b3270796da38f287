import {
  maxPasskeyNameLength,
  type PasskeysUnusable,
} from '../../../identity/accounts/passkeys.ts';
import { type Phrase, text } from '../../../platform/texts/text.ts';
import { actionForm, csrfField, hiddenFields, textField } from '../elements/form.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { passkeyForm } from '../elements/passkey-form.ts';
import { timeElement } from '../elements/quantity.ts';
import { type Html, html } from '../html.ts';

export interface PasskeySection {
  /** Why browsers offer none at this address. */
  readonly unusable: PasskeysUnusable | undefined;
  readonly passkeys: readonly ListedPasskey[];
  /** Name that is offered for a new one. */
  readonly suggestedName: string;
}

export interface ListedPasskey {
  readonly id: string;
  readonly name: string;
  readonly createdAt: Date;
  readonly lastUsedAt: Date | undefined;
  /** Whether it asks for a PIN, a finger or a face, so that it logs in by itself. */
  readonly verifiesUser: boolean;
  readonly mayRemove: boolean;
}

/** The passkeys of an account, with the form for another one. */
export function passkeySection(layout: FormLayoutProps, section: PasskeySection): Html {
  const { unusable, passkeys, suggestedName } = section;
  return html`<section class="block" id="passkeys"><h2>${text`Passkeys`}</h2><p class="soft">${text`A fingerprint, a face, a PIN or a security key logs you in without a password. Once you add a passkey, logins by password also need a second step.`}</p>
${passkeys.length > 0 && html`<ul class="list">${passkeys.map((passkey) => passkeyItem(layout, passkey))}</ul>`}
${
  unusable === undefined
    ? addForm(layout, suggestedName)
    : html`<p class="soft">${whyUnusable[unusable]}</p>`
}</section>`;
}

const whyUnusable: Readonly<Record<PasskeysUnusable, Phrase>> = {
  insecure: text`Browsers use passkeys over https only, and this hub is reached over plain http. Ask its operator for https.`,
  'no-name': text`Browsers use passkeys for a host name only, and this hub is reached by an IP address. Ask its operator for a name; on your own computer that is localhost.`,
};

function passkeyItem(layout: FormLayoutProps, passkey: ListedPasskey): Html {
  const { id, name, createdAt, lastUsedAt, verifiesUser, mayRemove } = passkey;
  const { now, urls } = layout;
  const added = timeElement(createdAt, now);
  const used =
    lastUsedAt === undefined
      ? text`Added ${added}, not used yet.`
      : text`Added ${added}, last used ${timeElement(lastUsedAt, now)}.`;
  return html`<li><div class="what"><strong>${name}</strong><p>${used}${!verifiesUser && html` ${text`It asks for no PIN, so it needs your password too.`}`}</p>
<details class="more"><summary aria-label="${text`Rename ${name}`}">${text`Rename`}</summary><form class="inline-form" method="post" action="${urls.renamePasskey}">${csrfField(layout)}${hiddenFields({ passkey: id })}${textField(
    {
      id: `rename-${id}`,
      name: 'name',
      label: text`New name`,
      value: name,
      maxLength: maxPasskeyNameLength,
    },
  )}<div class="actions"><button class="button small">${text`Save`}</button></div></form></details></div>${
    mayRemove
      ? actionForm(layout, {
          action: urls.removePasskey,
          label: text`Remove`,
          accessibleLabel: text`Remove ${name}`,
          style: 'small danger',
          fields: { passkey: id },
        })
      : html`<span class="small soft">${text`Your only second factor, which this hub requires`}</span>`
  }</li>`;
}

function addForm(layout: FormLayoutProps, suggestedName: string): Html {
  return html`${passkeyForm(layout, {
    purpose: 'add',
    action: layout.urls.passkeys,
    label: text`Add a passkey`,
    style: '',
    content: textField({
      id: 'passkey-name',
      name: 'name',
      label: text`Name of the new passkey`,
      value: suggestedName,
      maxLength: maxPasskeyNameLength,
      help: text`Helps you tell it from others.`,
    }),
  })}<p class="soft" data-without-passkeys>${text`This browser cannot use passkeys, or scripts are switched off.`}</p>`;
}
