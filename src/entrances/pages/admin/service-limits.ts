import type { RouteLimits } from '../../../platform/config/route-limits-schema.ts';
import { type Phrase, text } from '../../../platform/texts/text.ts';
import { selectField, textArea, textField } from '../elements/form.ts';
import { type Html, html } from '../html.ts';

const labels = {
  requests_per_second: text`Requests a second of one visitor`,
  bytes_per_second: text`Bytes a second to one visitor`,
  per: text`One visitor is`,
  max_body_size: text`Largest request in bytes`,
  request_timeout: text`Seconds for a request`,
  idle_timeout: text`Seconds in which nothing may move`,
  allow_addresses: text`Addresses that may come`,
  deny_addresses: text`Addresses that may not come`,
  client_certificate: text`Certificate of the browser`,
} as const satisfies Record<keyof RouteLimits, Phrase>;

const visitors = { user: text`A user, wherever they are`, address: text`An address` } as const;
/** In words, of fields with few values. */
const choicesOf: { readonly [field in LimitField]?: Readonly<Record<string, Phrase>> } = {
  per: visitors,
  client_certificate: { required: text`Required` },
};

const numbers: readonly string[] = ['requests_per_second', 'request_timeout', 'idle_timeout'];

type LimitField = keyof RouteLimits;
const fields = Object.keys(labels) as readonly LimitField[];

/** The limits of a service as its form has them; empty for what has none. */
export type LimitsForm = Readonly<Record<LimitField, string>>;

function formFrom(textOf: (field: LimitField) => string): LimitsForm {
  return Object.fromEntries(fields.map((field) => [field, textOf(field)])) as LimitsForm;
}

export function limitsFormOf(limits: RouteLimits | undefined): LimitsForm {
  return formFrom((field) => {
    const value = limits?.[field] ?? '';
    return Array.isArray(value) ? value.join('\n') : String(value);
  });
}

/** Fields are named as the settings: `limits.max_body_size`. */
export function readLimits(sent: URLSearchParams): LimitsForm {
  return formFrom((field) => (sent.get(`limits.${field}`) ?? '').trim());
}

/** The setting `limits`, not yet checked; undefined where the form has none. */
export function limitsOf({ per, ...form }: LimitsForm): Record<string, unknown> | undefined {
  const given = Object.entries(form).filter(([, value]) => value !== '');
  if (given.length === 0) return undefined;
  const settings = given.map(([field, value]) => {
    if (field.endsWith('_addresses')) return [field, value.split(/[\s,]+/)];
    return [field, numbers.includes(field) ? Number(value) : value];
  });
  return { ...Object.fromEntries(settings), ...(per !== '' && { per }) };
}

/** What is limited, by the labels of the form. */
export function limitFacts(
  form: LimitsForm,
): readonly { readonly label: Phrase; readonly value: Phrase }[] {
  return fields.flatMap((field) => {
    const isNeedless = field === 'per' && form.requests_per_second + form.bytes_per_second === '';
    if (form[field] === '' || isNeedless) return [];
    const value = choicesOf[field]?.[form[field]] ?? form[field];
    return [{ label: labels[field], value }];
  });
}

/** Closed, unless something is limited. */
export function limitFields(form: LimitsForm): Html {
  const field = (name: LimitField) => ({
    name: `limits.${name}`,
    label: labels[name],
    value: form[name],
    isOptional: true,
  });
  const number = (name: LimitField) => textField({ ...field(name), type: 'number', min: 0 });
  const select = (name: LimitField, none: Record<string, Phrase> = {}) => {
    const choices = Object.entries({ ...none, ...choicesOf[name] });
    return selectField({
      name: `limits.${name}`,
      label: labels[name],
      value: form[name],
      choices: choices.map(([value, label]) => ({ value, label })),
    });
  };
  return html`<details class="more"${limitFacts(form).length > 0 && html` open`}><summary>${text`Limits`}</summary>
${number('requests_per_second')}
${textField({ ...field('bytes_per_second'), isLiteral: true, placeholder: '5M' })}
${select('per')}
${textField({ ...field('max_body_size'), isLiteral: true, placeholder: '20M', help: text`As 500K, 20M or 2G. Without it, as for all apps.` })}
${number('request_timeout')}
${number('idle_timeout')}
${textArea({ ...field('allow_addresses'), placeholder: '10.0.0.0/8', help: text`Addresses or ranges, one on each line. Without one, every address may come.` })}
${textArea(field('deny_addresses'))}
${select('client_certificate', { '': text`Not required` })}
</details>`;
}
