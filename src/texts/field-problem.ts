import { inEnglish, type Text, text, translated } from './text.ts';

/** What is wrong with one field: `url: is not an http:// or https:// URL.` */
export function fieldProblem(field: string, problem = inEnglish`is not valid`): Text {
  return text`${field}: ${translated(problem)}.`;
}
