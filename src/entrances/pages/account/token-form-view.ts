import type { ScopeChoice, ScopeChoices } from '../../../identity/rbac/scope-choices.ts';
import { type ScopeGroup, scopeGroupTitles } from '../../../identity/rbac/scope-labels.ts';
import { type Phrase, text } from '../../../platform/texts/text.ts';
import {
  type Choice,
  csrfField,
  defaultLifetime,
  selectField,
  textField,
} from '../elements/form.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { notice } from '../elements/notice.ts';
import { scopePhrase } from '../elements/scope-labels.ts';
import { type Html, type HtmlValue, html } from '../html.ts';
import { namedReaches, type TokenExtent, type TokenForm } from './token-form.ts';

export interface NewTokenView {
  readonly layout: FormLayoutProps;
  /** Lifetimes to choose from; the form sends `expires_in`, empty for none. */
  readonly lifetimes: readonly Choice[];
  readonly extents: readonly TokenExtent[];
  readonly choices: ScopeChoices;
  /** Whether everything is what an administrator may do. */
  readonly isAdministrator: boolean;
  readonly form: TokenForm;
  /** Why no token was made. */
  readonly problem?: HtmlValue;
}

/** Services and single servers that are offered at once; the others are found by name. */
const maxOffered = 20;

/** The form for a new token: `note`, `expires_in`, `may`, `scope` for each tick, `reach`, `reach_name` and `scopes`. */
export function newTokenForm(view: NewTokenView): Html {
  const { layout, lifetimes, form, problem, choices } = view;
  const isLasting = lifetimes.some(({ value }) => value === '');
  return html`<form class="fields new-token" method="post" action="${layout.urls.createToken}#tokens">
${csrfField(layout)}
${problem !== undefined && notice('bad', problem)}
${textField({
  name: 'note',
  label: text`What is it for?`,
  value: form.note,
  isOptional: true,
  autocomplete: 'off',
  maxLength: 200,
  placeholder: text`Nightly report`,
  help: text`A label to recognise it later.`,
})}
<div class="lifetime">${selectField({ name: 'expires_in', label: text`How long should it work?`, choices: lifetimes, value: form.expires_in ?? defaultLifetime })}
${isLasting && html`<div class="when-lasting">${notice('warn', text`A token that does not expire works until you revoke it, also for someone who finds it. Prefer one that ends.`)}</div>`}</div>
${extentField(view)}
<div class="chosen${problem !== undefined && ' shown'}">
${choices.groups.map(({ group, choices: offered }) => groupField(view, group, offered))}
${expertField(form)}
</div>
<div class="actions"><button class="button primary">${text`Create token`}</button></div>
</form>`;
}

const extentLabels: Readonly<Record<TokenExtent, readonly [title: Phrase, help: Phrase]>> = {
  everything: [text`Full access`, text`Includes permissions you get later.`],
  identify: [text`Only know who I am`, text`Your user name and your groups.`],
  servers: [text`Use my servers`, text`Open, start, stop and delete your servers.`],
  choose: [text`Only what I choose`, text`Tick it below.`],
};

function extentField({ extents, form, isAdministrator }: NewTokenView): Html {
  // What reaches more is chosen, not had by not looking.
  const chosen = form.may ?? (extents.includes('servers') ? 'servers' : 'identify');
  return html`<fieldset class="choices extents"><legend>${text`What may it do?`}</legend>${extents.map(
    (extent) => {
      const [title, help] = extentLabels[extent];
      return html`<label class="choice"><input type="radio" name="may" value="${extent}"${extent === chosen && html` checked`} required><span><strong>${title}</strong><span>${help}</span>${
        extent === 'everything' &&
        isAdministrator &&
        html`<span class="risk">${text`You are an administrator: with it, someone else could delete users and use their servers.`}</span>`
      }</span></label>`;
    },
  )}</fieldset>`;
}

function groupField(view: NewTokenView, group: ScopeGroup, choices: readonly ScopeChoice[]): Html {
  const { form } = view;
  const ticked = new Set(form.ticked);
  const isTicked = (choice: ScopeChoice): boolean =>
    ticked.has(choice.scope) || choice.parts.some(isTicked);
  const wanted = form.search.toLowerCase();
  const isFound = ({ scope, description }: ScopeChoice) =>
    wanted === '' || `${String(description)} ${scope}`.toLowerCase().includes(wanted);
  const isSearched = choices.length > maxOffered;
  const found = choices.filter((choice) => !isTicked(choice) && (!isSearched || isFound(choice)));
  const shown = [...choices.filter(isTicked), ...found.slice(0, maxOffered)];
  const left = found.length - maxOffered;
  return html`<fieldset class="choices rights" id="token-${group}"><legend>${scopeGroupTitles[group]}</legend>
${(group === 'people' || (group === 'hub' && !hasPeople(view))) && reachField(view)}
${isSearched && searchField(view, group)}
${shown.length === 0 && html`<p class="soft">${text`Nothing of that name.`}</p>`}
${shown.map((choice, index) => choiceField(choice, ticked, `${group}-${index}`, isTicked))}
${left > 0 && html`<p class="soft">${text`And ${left} more. Find them by name.`}</p>`}</fieldset>`;
}

const hasPeople = ({ choices }: NewTokenView) =>
  choices.groups.some(({ group }) => group === 'people');

function searchField({ layout, form }: NewTokenView, group: ScopeGroup): Html {
  return html`<div class="inline-form">${textField({
    name: 'service_search',
    id: `search-${group}`,
    label: text`Find by name`,
    type: 'search',
    value: form.search,
    isOptional: true,
    autocomplete: 'off',
    isLiteral: true,
    maxLength: 100,
  })}<button class="button" name="find" value="${group}" formaction="${layout.urls.createToken}#token-${group}" formnovalidate>${text`Find`}</button></div>`;
}

function choiceField(
  choice: ScopeChoice,
  ticked: ReadonlySet<string>,
  key: string,
  isTicked: (choice: ScopeChoice) => boolean,
): Html {
  const { scope, risk, parts } = choice;
  const id = `scope-${key}`;
  return html`<div class="check"><input type="checkbox" id="${id}" name="scope" value="${scope}"${ticked.has(scope) && html` checked`} aria-describedby="${id}-help"><label for="${id}">${scopePhrase(choice)}</label><p class="help" id="${id}-help">${risk !== undefined && html`<span class="risk">${risk}</span> `}<code>${scope}</code></p>${
    parts.length > 0 &&
    html`<details class="more small parts"${parts.some(isTicked) && html` open`}><summary aria-label="${text`Only parts of it: ${choice.description}`}">${text`Only parts of it`}</summary><div class="choices">${parts.map((part, index) => choiceField(part, ticked, `${key}-${index}`, isTicked))}</div></details>`
  }</div>`;
}

const reachLabels: Readonly<Record<(typeof namedReaches)[number], Phrase>> = {
  user: text`One user, by name`,
  group: text`The members of one group, by name`,
  service: text`One service, by name`,
};

/** For whom what reaches others holds, one choice for all that is ticked. */
function reachField({ choices, form }: NewTokenView): HtmlValue {
  const { reaches, reachKinds } = choices;
  if (reaches.length === 0) return false;
  const isUnlimited = reaches.includes('');
  const named = namedReaches.filter(
    (kind) => reachKinds.includes(kind) && (isUnlimited || kind === 'user'),
  );
  const options = [
    ...reaches.map((reach) => ({ value: reach, label: reachLabel(reach) })),
    ...named.map((kind) => ({ value: kind, label: reachLabels[kind] })),
  ];
  return html`<div class="reach">${selectField({
    name: 'reach',
    label: text`Only for`,
    choices: options,
    value: form.reach,
    help: text`For what reaches others: it holds for all that you tick.`,
  })}${
    named.length > 0 &&
    textField({
      name: 'reach_name',
      label: text`Name`,
      value: form.reachName,
      isOptional: true,
      autocomplete: 'off',
      isLiteral: true,
      maxLength: 255,
      help: text`Of the user, group or service, where you choose one by name.`,
    })
  }</div>`;
}

function reachLabel(reach: string): Phrase {
  const at = reach.indexOf('=');
  const name = reach.slice(at + 1);
  switch (reach.slice(1, at)) {
    case 'user':
      return text`The user ${name}`;
    case 'group':
      return text`The members of ${name}`;
    case 'service':
      return text`The service ${name}`;
    default:
      return text`No limit`;
  }
}

function expertField({ scopes }: TokenForm): Html {
  return html`<details class="more"${scopes !== '' && html` open`}><summary>${text`Type scopes`}</summary>${textField(
    {
      name: 'scopes',
      label: text`Scopes`,
      value: scopes,
      isOptional: true,
      autocomplete: 'off',
      isLiteral: true,
      help: text`Separated by spaces, beside what is ticked.`,
    },
  )}</details>`;
}
