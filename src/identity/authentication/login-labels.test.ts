import { expect, test } from 'vitest';
import { loadLanguages } from '../../platform/texts/languages.ts';
import { phraseIn } from '../../platform/texts/text.ts';
import { loginLabels } from './login-labels.ts';

const { all } = await loadLanguages();
const german = all.find(({ tag }) => tag === 'de') ?? expect.fail();

test.each([
  ['Password', 'Passwort'],
  ['Directory account', 'Verzeichniskonto'],
  [{ en: 'Staff', de: 'Personal' }, 'Personal'],
  [{ fr: 'Personnel' }, 'Personnel'],
  ['Our company', 'Our company'],
  ['constructor', 'constructor'],
])('a way to log in called %j is %s to readers of German', (label, expected) => {
  expect(phraseIn(loginLabels(label), german)).toBe(expected);
});
