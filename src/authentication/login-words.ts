import { type OwnText, ownPhrase } from '../texts/own-text.ts';
import { type Phrase, text } from '../texts/text.ts';

/** What built-in authenticators call themselves and their fields, unless the configuration says otherwise. */
const ownWords: Readonly<Record<string, Phrase>> = {
  'User name': text`User name`,
  Password: text`Password`,
  'Directory account': text`Directory account`,
  'Single sign-on': text`Single sign-on`,
  'Any name (for trying out)': text`Any name (for trying out)`,
};

/** The label of a way to log in, or of a field of its form, for readers of each language. */
export function loginWords(label: OwnText): Phrase {
  const isOwn = typeof label === 'string' && Object.hasOwn(ownWords, label);
  return (isOwn ? ownWords[label] : undefined) ?? ownPhrase(label);
}
