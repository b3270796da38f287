import {
  type LocalizedText,
  localizedPhrase,
  type Phrase,
  text,
} from '../../platform/texts/text.ts';

/** What built-in authenticators call themselves and their fields, unless the configuration says otherwise. */
const customLabels: Readonly<Record<string, Phrase>> = {
  'User name': text`User name`,
  Password: text`Password`,
  'Directory account': text`Directory account`,
  'Single sign-on': text`Single sign-on`,
  'Any name (for trying out)': text`Any name (for trying out)`,
};

/** The label of a way to log in, or of a field of its form, for readers of each language. */
export function loginLabels(label: LocalizedText): Phrase {
  const isOwn = typeof label === 'string' && Object.hasOwn(customLabels, label);
  return (isOwn ? customLabels[label] : undefined) ?? localizedPhrase(label);
}
