import { localizedPhrase, type Phrase, type Text, text } from '../../../platform/texts/text.ts';
import type { Prices } from '../../../workloads/usage/count-use.ts';
import { checkBox, csrfField, hiddenFields, selectField, textField } from '../elements/form.ts';
import { pageHead, pageLayout } from '../elements/layout.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { notice } from '../elements/notice.ts';
import { formatSum } from '../elements/quantity.ts';
import { type Html, html } from '../html.ts';
import { serverTitle } from './server-summary.ts';
import type { AskedField, AskedForm } from './spawn-form.ts';

export interface SpawnOptionsView {
  readonly layout: FormLayoutProps;
  readonly server: {
    readonly userName: string;
    readonly name: string;
    readonly displayName?: string | undefined;
  };
  /** Kinds of server to choose from; the form sends `profile`. */
  readonly profiles: readonly SpawnProfile[];
  /** Of prices. */
  readonly currency?: string;
  /** The spawner's own questions; the form sends each as `option-<name>`. */
  readonly form?: AskedForm | undefined;
  /** What was chosen before, by field name of the spawner; `profile` apart. */
  readonly values?: Readonly<Record<string, string>> | undefined;
  readonly chosenProfile?: string | undefined;
  /** Problems by field name. */
  readonly problems?: Readonly<Record<string, string>> | undefined;
  readonly error?: Phrase | undefined;
  /** Where the browser goes when the server runs. */
  readonly next?: string | undefined;
}

export interface SpawnProfile {
  readonly name: string;
  readonly displayName?: Phrase | undefined;
  readonly description: Phrase;
  readonly isDefault?: boolean | undefined;
  /** What an hour of each costs. */
  readonly prices?: Prices | undefined;
}

/** The page that asks what kind of server to start. */
export function spawnOptionsPage(view: SpawnOptionsView): Html {
  const { layout, server, error, next } = view;
  const fields = view.form?.fields ?? [];
  return pageLayout(layout, {
    title: text`Start a server`,
    place: 'home',
    body: html`${pageHead(startTitle(view), text`Choose a configuration. You can change it next time.`)}
${error !== undefined && html`<div class="page-notice">${notice('bad', error)}</div>`}
<form class="fields" method="post" action="${layout.urls.spawn(server.userName, server.name)}">
${csrfField(layout)}${hiddenFields({ next })}
${profileChoices(view)}
${fields.map((field) => optionField(view, field))}
<div class="actions"><button class="button primary">${text`Start server`}</button><a class="button" href="${layout.urls.home}">${text`Cancel`}</a></div>
</form>`,
  });
}

function startTitle({ layout: { user }, server }: SpawnOptionsView): Text {
  const isOwnDefault = server.name === '' && !server.displayName && user?.name === server.userName;
  return isOwnDefault ? text`Start your server` : text`Start ${serverTitle(server, user?.name)}`;
}

function profileChoices({
  profiles,
  chosenProfile,
  currency = '',
}: SpawnOptionsView): Html | false {
  if (profiles.length === 0) return false;
  const chosen =
    profiles.find(({ name }) => name === chosenProfile) ??
    profiles.find(({ isDefault }) => isDefault) ??
    profiles[0];
  return html`<fieldset class="choices"><legend>${text`Server type`}</legend>${profiles.map(
    (profile) =>
      html`<label class="choice"><input type="radio" name="profile" value="${profile.name}"${profile === chosen && html` checked`} required><span><strong>${profile.displayName ?? profile.name}</strong>${profile.description && html`<span>${profile.description}</span>`}${priceLines(profile, currency)}</span></label>`,
  )}</fieldset>`;
}

function priceLines({ prices }: SpawnProfile, currency: string): readonly Html[] {
  if (prices === undefined) return [];
  const amount = (price: number) => formatSum(price, currency, { maximumFractionDigits: 4 });
  const lines = [
    [prices.server_hour, text`${amount(prices.server_hour)} per hour`],
    [prices.cpu_hour, text`${amount(prices.cpu_hour)} per CPU hour`],
    [prices.gib_hour, text`${amount(prices.gib_hour)} per GiB hour`],
    [prices.gpu_hour, text`${amount(prices.gpu_hour)} per GPU hour`],
  ] as const;
  return lines.flatMap(([price, line]) => (price > 0 ? [html`<span>${line}</span>`] : []));
}

function choicesOf({ choices = [] }: AskedField) {
  return choices.map(({ value, label }) => ({ value, label: localizedPhrase(label) }));
}

function optionField({ values, problems }: SpawnOptionsView, field: AskedField): Html {
  const value = values?.[field.name] ?? field.default;
  const shared = {
    name: `option-${field.name}`,
    label: field.label,
    help: field.help && localizedPhrase(field.help),
    problem: problems?.[field.name],
  };
  switch (field.type) {
    case 'select':
      return selectField({ ...shared, choices: choicesOf(field), value });
    case 'checkbox':
      return checkBox({ ...shared, isChecked: value === 'true' });
    case 'text':
    case 'number':
      return textField({
        ...shared,
        type: field.type,
        value,
        isOptional: !field.required,
        autocomplete: 'off',
        min: field.min,
        max: field.max,
      });
  }
}
