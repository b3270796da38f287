import type { HubError } from '../../../platform/errors.ts';
import { fieldError } from '../../../platform/http/field-error.ts';
import type { Forwarding } from '../../../platform/protocol/identity-headers.ts';
import { type Phrase, text } from '../../../platform/texts/text.ts';
import { textArea } from '../elements/form.ts';
import { type Html, html } from '../html.ts';

const labels = {
  'request.set': text`Headers set in requests`,
  'request.remove': text`Headers removed from requests`,
  'response.set': text`Headers set in answers`,
  'response.remove': text`Headers removed from answers`,
} as const satisfies Record<string, Phrase>;

type HeaderField = keyof typeof labels;
const fields = Object.keys(labels) as readonly HeaderField[];

/** What a service changes of headers as its form has it: one header on each line, empty for none. */
export type HeadersForm = Readonly<Record<HeaderField, string>>;

function formFrom(textOf: (field: HeaderField) => string): HeadersForm {
  return Object.fromEntries(fields.map((field) => [field, textOf(field)])) as HeadersForm;
}

export function headersFormOf(headers: Forwarding['headers']): HeadersForm {
  const lines = (direction: 'request' | 'response') => {
    const { set = {}, remove = [] } = headers?.[direction] ?? {};
    const given = Object.entries(set).map(([name, value]) => `${name}: ${value}`);
    return { [`${direction}.set`]: given, [`${direction}.remove`]: remove };
  };
  const all = { ...lines('request'), ...lines('response') };
  return formFrom((field) => all[field]?.join('\n') ?? '');
}

/** Fields are named as the settings: `headers.request.set`. */
export function readHeaders(sent: URLSearchParams): HeadersForm {
  return formFrom((field) => (sent.get(`headers.${field}`) ?? '').trim());
}

/**
 * The setting `headers`, its names and values not yet checked; undefined where the form has none. Throws
 * `bad_request` for a line that sets no header.
 */
export function headersOf(form: HeadersForm): Record<string, unknown> | undefined {
  if (fields.every((field) => form[field] === '')) return undefined;
  const edits = (direction: 'request' | 'response') => {
    const field = `${direction}.set` as const;
    const refusal = (line: number) =>
      fieldError(`headers.${field}`, text`line ${line} is not Name: value`);
    const pairs = readPairs(form[field], /^\s*([^:\s]+):\s*(.*?)\s*$/, refusal);
    const set = Object.fromEntries(pairs);
    // The last one alone would be left of them.
    if (Object.keys(set).length < pairs.length)
      throw fieldError(`headers.${field}`, text`has the same header twice`);
    const remove = form[`${direction}.remove`].split(/[\s,]+/).filter((name) => name !== '');
    return { set, remove };
  };
  return { request: edits('request'), response: edits('response') };
}

/**
 * Names and values of lines, as a pattern has them. Throws a refusal for a line that is neither empty nor one: it may
 * hold a secret and is not to be repeated.
 */
export function readPairs(
  lines: string,
  pattern: RegExp,
  refusal: (line: number) => HubError,
): [string, string][] {
  return lines.split(/\r?\n/).flatMap((line, index): [string, string][] => {
    if (line.trim() === '') return [];
    const [, name, value] = pattern.exec(line) ?? [];
    if (name !== undefined && value !== undefined) return [[name, value]];
    throw refusal(index + 1);
  });
}

/** The names of what is changed, by the labels of the form; a value may be a secret. */
export function headerFacts(
  form: HeadersForm,
): readonly { readonly label: Phrase; readonly value: Phrase }[] {
  return fields.flatMap((field) => {
    const value = form[field].replaceAll(/:.*$/gm, '').split(/\s+/).join(', ');
    return value === '' ? [] : [{ label: labels[field], value }];
  });
}

/** Closed, unless something is changed. */
export function headerFields(form: HeadersForm): Html {
  const area = (name: HeaderField, placeholder: string, help?: Phrase) =>
    textArea({
      name: `headers.${name}`,
      label: labels[name],
      value: form[name],
      isOptional: true,
      placeholder,
      help,
    });
  return html`<details class="more"${headerFacts(form).length > 0 && html` open`}><summary>${text`Headers`}</summary>
${area('request.set', 'X-Api-Key: …', text`Sent to the app in place of what visitors send, one on each line. Who changes the service reads the values here; its page shows the names alone.`)}
${area('request.remove', 'Accept-Language', text`Names, one on each line.`)}
${area('response.set', 'X-Frame-Options: DENY', text`Sent to visitors in place of what the app sends, one on each line.`)}
${area('response.remove', 'Server')}
</details>`;
}
