import {
  type AccessBundle,
  type AccessKind,
  accessBundles,
  placeKinds,
  roleDescription,
} from '../../../identity/rbac/role.ts';
import type { AccessEntry } from '../../../operations/access.ts';
import { message, type Phrase, text } from '../../../platform/texts/text.ts';
import { adminLink } from '../elements/admin-link.ts';
import { kindLabels, kindsLabels, originWord } from '../elements/code-labels.ts';
import {
  actionForm,
  csrfField,
  hiddenFields,
  namesField,
  selectField,
  textField,
} from '../elements/form.ts';
import { adminLayout, pageHead } from '../elements/layout.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { notice } from '../elements/notice.ts';
import { type Html, type HtmlValue, html } from '../html.ts';

export interface GiveAccessView {
  readonly layout: FormLayoutProps;
  readonly typed: GiveAccessFields;
  /** The scopes that the administrator may give. */
  readonly scopes: readonly { readonly scope: string; readonly description: Phrase }[];
  /** Groups and services that are offered. */
  readonly places: readonly { readonly type: string; readonly name: string }[];
  readonly cancelUrl: string;
  readonly problem?: Phrase | undefined;
}

/** What the form sends. */
export interface GiveAccessFields {
  readonly holders: string;
  readonly names: string;
  readonly kind: string;
  readonly scopes: string;
  readonly where: string;
  readonly place: string;
  readonly return_to: string;
}

/** The form that gives access: to whom, what, and where. */
export function giveAccessPage(view: GiveAccessView): Html {
  const { layout, typed, scopes, places, problem } = view;
  return adminLayout(layout, {
    title: text`Give access`,
    tab: 'roles',
    scripts: ['several-words.js', 'complete-names.js'],
    body: html`${pageHead(text`Give access`, text`You can only grant permissions you have.`)}
<form class="fields" method="post" action="${layout.urls.adminGiveAccess()}">
${csrfField(layout)}${hiddenFields({ return_to: typed.return_to })}${problem !== undefined && notice('bad', problem)}
${selectField({
  name: 'holders',
  label: message('To', {}, { context: 'recipient' }),
  choices: (['user', 'group', 'service'] as const).map((kind) => ({
    value: kind,
    label: kindsLabels[kind],
  })),
  value: typed.holders,
})}
${namesField({ completes: 'holders', name: 'names', label: text`Names`, value: typed.names, help: text`One on each line.` })}
<fieldset class="choices"><legend>${text`What`}</legend>${Object.entries<AccessBundle>(accessBundles).map(([kind, { title, help }]) => kindChoice(kind as AccessKind, typed.kind, [title, help]))}
${kindChoice('custom', typed.kind, [text`Chosen permissions`, text`Those that are named under “Advanced”.`])}</fieldset>
${selectField({
  name: 'where',
  label: text`Where`,
  choices: placeKinds.map((kind) => ({ value: kind, label: placeLabels[kind] })),
  value: typed.where,
})}
${textField({ name: 'place', label: text`Name of the group, service or server`, value: typed.place, help: text`A server as user/server; user/ is the default one.`, list: 'places', completes: 'where', isOptional: true, isLiteral: true, autocomplete: 'off', maxLength: 600 })}
<datalist id="places">${places.map(({ type, name }) => html`<option value="${name}" data-type="${type}"></option>`)}</datalist>
<details class="more"${typed.kind === 'custom' && html` open`}><summary>${text`Advanced`}</summary>
${textField({ name: 'scopes', label: text`Scopes`, value: typed.scopes, help: text`With spaces between them. Those without a filter hold only in the place above.`, list: 'scopes', isOptional: true, isLiteral: true, autocomplete: 'off' })}
<datalist id="scopes">${scopes.map(({ scope, description }) => html`<option value="${scope}">${description}</option>`)}</datalist></details>
<div class="actions"><button class="button primary">${text`Give access`}</button> <a class="button" href="${view.cancelUrl}">${text`Cancel`}</a></div>
</form>`,
  });
}

const placeLabels = {
  group: text`In one group`,
  service: text`In one service`,
  server: text`In one server`,
  all: text`Everywhere`,
} as const;

function kindChoice(
  kind: AccessKind,
  chosen: string,
  [title, help]: readonly [Phrase, Phrase],
): Html {
  return html`<label class="choice"><input type="radio" name="kind" value="${kind}"${kind === chosen && html` checked`} required><span><strong>${title}</strong><span>${help}</span></span></label>`;
}

/** Who was given access to one group or service, with a button that gives more. */
export interface AccessView {
  readonly entries: readonly (AccessEntry & { readonly mayTakeAway: boolean })[];
  /** False where roles have more holders than are listed. */
  readonly isWhole: boolean;
  /** Undefined for who may give none. */
  readonly giveUrl: string | undefined;
}

/** The section of that on the page of the group or service, at whose address it stands. */
export function accessSection(
  layout: FormLayoutProps,
  view: AccessView | undefined,
  ownUrl: string,
): HtmlValue {
  if (view === undefined) return false;
  return html`<section class="block"><h2>${text`Who has access`}</h2>
<p class="soft">${text`Administrators, and others with access everywhere, are not listed.`}</p>
${
  view.entries.length > 0 &&
  html`<ul class="list">${view.entries.map(
    ({ role, subjectKind, subjectName, origin, mayTakeAway }) =>
      html`<li><div class="what">${adminLink(layout, subjectKind, subjectName)} <span class="soft">${kindLabels[subjectKind]}</span><p>${adminLink(layout, 'role', role.name, roleDescription(role) || role.name)}. ${text`By ${originWord(origin)}`}</p></div>${mayTakeAway && takeAwayForm(layout, { role: role.name, kind: subjectKind, name: subjectName, ownUrl })}</li>`,
  )}</ul>`
}${!view.isWhole && html`<p class="soft">${text`The page of a role lists all who hold it.`}</p>`}
${giveAccessLink(view.giveUrl)}</section>`;
}

/** A button that leads to the form; nothing for who may not use it. */
export function giveAccessLink(url: string | undefined): HtmlValue {
  return url !== undefined && html`<p><a class="button" href="${url}">${text`Give access`}</a></p>`;
}

/** The button that takes a role away, and comes back to the page on which it stands. */
export function takeAwayForm(
  layout: FormLayoutProps,
  {
    role,
    kind,
    name,
    ownUrl,
  }: {
    readonly role: string;
    readonly kind: string;
    readonly name: string;
    readonly ownUrl: string;
  },
): Html {
  return actionForm(layout, {
    action: layout.urls.adminRole(role, 'take-away'),
    label: text`Remove access`,
    accessibleLabel: text`Remove access of ${name} by ${role}`,
    style: 'small danger',
    fields: { kind, name, return_to: ownUrl },
  });
}
