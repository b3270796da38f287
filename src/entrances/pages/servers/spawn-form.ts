import { joined, localizedPhrase, type Phrase } from '../../../platform/texts/text.ts';
import type { OptionsField } from '../../../plugin/host/spawner.ts';
import type { SpawnChoices } from '../../../workloads/servers/spawn-options.ts';

/** The questions as the page asks them. */
export interface AskedForm {
  readonly fields: readonly AskedField[];
}

export type AskedField = Omit<OptionsField, 'label'> & { readonly label: Phrase };

/**
 * The questions of all spawners in one form. Where several ask, each field has the spawner's name before its own,
 * and says for which kinds of server it is; that it is required is seen when it is sent.
 */
export function joinForms(choices: SpawnChoices): AskedForm | undefined {
  const { forms, profiles, spawnerOf } = choices;
  if (forms.size <= 1) {
    const [form] = forms.values();
    const asked = form?.fields.map((field) => ({ ...field, label: localizedPhrase(field.label) }));
    return asked && { fields: asked };
  }
  const fields = [...forms].flatMap(([spawner, form]) => {
    const kinds = profiles
      .filter((profile) => spawnerOf(profile) === spawner)
      .map(({ display_name, name }) => localizedPhrase(display_name ?? name));
    if (kinds.length === 0) return [];
    return form.fields.map((field) => ({
      ...field,
      name: prefixed(spawner, field.name),
      label: joined([localizedPhrase(field.label), ' (', joined(kinds, ', '), ')'], ''),
      required: false,
    }));
  });
  return { fields };
}

/** Values by the names that their fields have in the form. */
export function valuesInForm(
  { forms, profiles, spawnerOf }: SpawnChoices,
  values: Readonly<Record<string, string>>,
): Record<string, string> {
  if (forms.size <= 1) return { ...values };
  const spawner = spawnerOf(profiles.find(({ name }) => name === values['profile']));
  const named = Object.entries(values).map(([name, value]) => [prefixed(spawner, name), value]);
  return { ...values, ...Object.fromEntries(named) };
}

/** What the form chose; undefined when it asked nothing, which uses the last choice again. */
export function submittedOptions(
  form: URLSearchParams,
  { forms, profiles, spawnerOf }: SpawnChoices,
): Record<string, string> | undefined {
  const options: Record<string, string> = {};
  const chosen = form.get('profile') ?? undefined;
  if (chosen !== undefined) options['profile'] = chosen;
  const spawner = spawnerOf(profiles.find(({ name }) => name === chosen));
  const start = forms.size <= 1 ? 'option-' : `option-${prefixed(spawner, '')}`;
  for (const [name, value] of form) {
    if (name.startsWith(start)) options[name.slice(start.length)] = value;
  }
  return Object.keys(options).length === 0 ? undefined : options;
}

function prefixed(spawner: string, field: string): string {
  return `${spawner}/${field}`;
}
