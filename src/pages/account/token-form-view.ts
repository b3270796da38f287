import type { ScopeFilterKind } from '../../rbac/scope.ts';
import type { ScopeChoice, ScopeChoices } from '../../rbac/scope-choices.ts';
import { type ScopeGroup, scopeGroupTitles } from '../../rbac/scope-words.ts';
import { type Choice, csrfField, selectField, textField } from '../elements/form.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { notice } from '../elements/notice.ts';
import { scopePhrase } from '../elements/scope-words.ts';
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
  readonly problem?: string | undefined;
}

/** Services and single servers that are offered at once; the others are found by name. */
const mostOffered = 20;

/** The form for a new token: `note`, `expires_in`, `may`, `scope` for each tick, `reach`, `reach_name` and `scopes`. */
export function newTokenForm(view: NewTokenView): Html {
  const { layout, lifetimes, form, problem, choices } = view;
  const isLasting = lifetimes.some(({ value }) => value === '');
  return html`<form class="fields new-token" method="post" action="${layout.urls.tokens}">
${csrfField(layout)}
${problem !== undefined && notice('bad', problem)}
${textField({
  name: 'note',
  label: 'What is it for?',
  value: form.note,
  isOptional: true,
  autocomplete: 'off',
  maxLength: 200,
  placeholder: 'Nightly report',
  help: 'Helps you to know later which token is which.',
})}
<div class="lifetime">${selectField({ name: 'expires_in', label: 'How long should it work?', choices: lifetimes, value: form.expires_in })}
${isLasting && html`<div class="when-lasting">${notice('warn', 'A token that does not expire works until you revoke it, also for someone who finds it. Prefer one that ends.')}</div>`}</div>
${extentField(view)}
<div class="chosen${problem !== undefined && ' shown'}">
${choices.groups.map(({ group, choices: offered }) => groupField(view, group, offered))}
${expertField(form)}
</div>
<div class="actions"><button class="button primary">Create token</button></div>
</form>`;
}

const extentWords: Readonly<Record<TokenExtent, readonly [title: string, help: string]>> = {
  everything: ['Everything I may do', 'Also what you are allowed later.'],
  identify: ['Only know who I am', 'Your user name and your groups.'],
  servers: ['Use my servers', 'Open, start, stop and delete your servers.'],
  choose: ['Only what I choose', 'Tick it below.'],
};

function extentField({ extents, form, isAdministrator }: NewTokenView): Html {
  // An administrator chooses: everything is too much to be had by not looking.
  const chosen = form.may ?? (isAdministrator ? undefined : 'everything');
  return html`<fieldset class="choices extents"><legend>What may it do?</legend>${extents.map(
    (extent) => {
      const [title, help] = extentWords[extent];
      return html`<label class="choice"><input type="radio" name="may" value="${extent}"${extent === chosen && html` checked`} required><span><strong>${title}</strong><span>${help}</span>${
        extent === 'everything' &&
        isAdministrator &&
        html`<span class="risk">You are an administrator: with it, someone else could delete users and use their servers.</span>`
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
    wanted === '' || `${description} ${scope}`.toLowerCase().includes(wanted);
  const isSearched = choices.length > mostOffered;
  const found = choices.filter((choice) => !isTicked(choice) && (!isSearched || isFound(choice)));
  const shown = [...choices.filter(isTicked), ...found.slice(0, mostOffered)];
  const left = found.length - mostOffered;
  return html`<fieldset class="choices rights" id="token-${group}"><legend>${scopeGroupTitles[group]}</legend>
${(group === 'people' || (group === 'hub' && !hasPeople(view))) && reachField(view)}
${isSearched && searchField(view, group)}
${shown.length === 0 && html`<p class="soft">Nothing of that name.</p>`}
${shown.map((choice, index) => choiceField(choice, ticked, `${group}-${index}`, isTicked))}
${left > 0 && html`<p class="soft">And ${left} more. Find them by name.</p>`}</fieldset>`;
}

const hasPeople = ({ choices }: NewTokenView) =>
  choices.groups.some(({ group }) => group === 'people');

function searchField({ layout, form }: NewTokenView, group: ScopeGroup): Html {
  return html`<div class="inline-form">${textField({
    name: 'service_search',
    id: `search-${group}`,
    label: 'Find by name',
    type: 'search',
    value: form.search,
    isOptional: true,
    autocomplete: 'off',
    isLiteral: true,
    maxLength: 100,
  })}<button class="button" name="find" value="${group}" formaction="${layout.urls.tokens}#token-${group}" formnovalidate>Find</button></div>`;
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
    html`<details class="more small parts"${parts.some(isTicked) && html` open`}><summary aria-label="Only parts of it: ${choice.description}">Only parts of it</summary><div class="choices">${parts.map((part, index) => choiceField(part, ticked, `${key}-${index}`, isTicked))}</div></details>`
  }</div>`;
}

const reachWords: Readonly<Record<(typeof namedReaches)[number], string>> = {
  user: 'One user, by name',
  group: 'The members of one group, by name',
  service: 'One service, by name',
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
    ...named.map((kind) => ({ value: kind, label: reachWords[kind] })),
  ];
  return html`<div class="reach">${selectField({
    name: 'reach',
    label: 'Only for',
    choices: options,
    value: form.reach,
    help: 'For what reaches others: it holds for all that you tick.',
  })}${
    named.length > 0 &&
    textField({
      name: 'reach_name',
      label: 'Name',
      value: form.reachName,
      isOptional: true,
      autocomplete: 'off',
      isLiteral: true,
      maxLength: 255,
      help: 'Of the user, group or service, where you choose one by name.',
    })
  }</div>`;
}

function reachLabel(reach: string): string {
  if (reach === '') return 'No limit';
  const [kind, name] = splitReach(reach);
  if (kind === 'group') return `The members of ${name}`;
  return kind === 'user' ? `The user ${name}` : `The ${kind} ${name}`;
}

function splitReach(reach: string): [kind: ScopeFilterKind, name: string] {
  const at = reach.indexOf('=');
  return [reach.slice(1, at) as ScopeFilterKind, reach.slice(at + 1)];
}

function expertField({ scopes }: TokenForm): Html {
  return html`<details class="more"${scopes !== '' && html` open`}><summary>Type scopes</summary>${textField(
    {
      name: 'scopes',
      label: 'Scopes',
      value: scopes,
      isOptional: true,
      autocomplete: 'off',
      isLiteral: true,
      placeholder: 'read:users!user servers!user',
      help: 'Separated by spaces, beside what is ticked.',
    },
  )}</details>`;
}
