import { expect, test } from 'vitest';
import type { HubError } from '../../platform/errors.ts';
import { english } from '../../platform/texts/language.ts';
import { loadLanguages } from '../../platform/texts/languages.ts';
import { phraseIn } from '../../platform/texts/text.ts';
import { normaliseUserName, validateUserName } from './user-name.ts';

test.for([
  'alice',
  'Alice B.',
  'a@example.org',
  'jos\u00e9',
  '李',
  '...',
  'a'.repeat(255),
  'ü'.repeat(255),
  '李'.repeat(170),
])('%j can be the name of a user', (name) => {
  expect(validateUserName(name)).toBe(name);
});

test.for([
  '',
  'a/b',
  '.',
  '..',
  ' alice',
  'alice ',
  'a\u0000b',
  'a\nb',
  'a\u2028b',
  'a\u007f',
  '\ud800',
  'a'.repeat(256),
  '李'.repeat(171),
  '😀'.repeat(255),
])('%j cannot be the name of a user', (name) => {
  expect(() => validateUserName(name)).toThrow(expect.objectContaining({ code: 'bad_request' }));
});

test('a refusal is in the language of its reader', async () => {
  const german = (await loadLanguages()).find('de') ?? english;
  let refusal: unknown;
  try {
    validateUserName('a'.repeat(256));
  } catch (error) {
    refusal = error;
  }
  const { message, shown } = refusal as HubError;
  expect(message).toBe('This cannot be the name of a user: it is longer than 255 characters.');
  expect(phraseIn(shown.message, german)).toBe(
    'So kann ein Benutzer nicht heißen: Der Name ist länger als 255 Zeichen.',
  );
});

test('a refusal does not repeat the name', () => {
  expect(() => validateUserName(`secret${'/'.repeat(3)}`)).toThrow(/^(?!.*secret)/);
});

test('both spellings of an accented letter are one name', () => {
  expect(normaliseUserName('jose\u0301')).toBe(normaliseUserName('jos\u00e9'));
});
