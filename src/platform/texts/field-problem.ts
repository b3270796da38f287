import { type Phrase, type Text, text } from './text.ts';

/** What is wrong with one field: `url: is not an http:// or https:// URL.` */
export function fieldProblem(field: string, problem: Phrase = text`is not valid`): Text {
  return text`${field}: ${problem}.`;
}
