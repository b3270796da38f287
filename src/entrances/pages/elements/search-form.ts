import { type Phrase, text } from '../../../platform/texts/text.ts';
import { type Html, html } from '../html.ts';
import { hiddenFields } from './form.ts';

/** The search of a list, which leads to the address of the list with `search` in its query. */
export function searchForm(
  url: string,
  form: {
    readonly label: Phrase;
    readonly search: string;
    /** Go along in the query. */
    readonly fields?: Readonly<Record<string, string | undefined>>;
    /** A second thing to look for. */
    readonly second?: Parameters<typeof searchField>[0];
  },
): Html {
  const { label, search, fields = {}, second } = form;
  return html`<form class="inline-form" method="get" action="${url}" role="search">${hiddenFields(fields)}
${searchField({ name: 'search', label, value: search })}
${second !== undefined && searchField(second)}<button class="button">${text`Search`}</button>
</form>`;
}

function searchField(field: {
  readonly name: string;
  readonly label: Phrase;
  readonly value: string;
}): Html {
  const { name, label, value } = field;
  return html`<div class="field"><label for="${name}">${label}</label><input class="input" id="${name}" name="${name}" type="search" value="${value}" maxlength="255" autocapitalize="none" spellcheck="false"></div>
`;
}
