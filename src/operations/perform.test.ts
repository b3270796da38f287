import { expect, test } from 'vitest';
import { z } from 'zod';
import type { HubError } from '../platform/errors.ts';
import { loadLanguages } from '../platform/texts/languages.ts';
import { phraseIn } from '../platform/texts/text.ts';
import { checkBody } from './perform.ts';

test('says in the language of its reader what is too short or too long', async () => {
  const schema = z.object({
    name: z.string().min(1),
    groups: z.array(z.string()).max(1),
    days: z.int().max(7),
  });
  const languages = await loadLanguages();
  const shown = ['en', 'de'].map((tag) => {
    try {
      return checkBody(schema, { name: '', groups: ['a', 'b'], days: 8 });
    } catch (error) {
      return phraseIn((error as HubError).shown.message, languages.find(tag)!);
    }
  });
  expect(shown).toEqual([
    'Invalid request body: name: is too short: at least 1; groups: is too long: at most 1; days: must be at most 7.',
    'Ungültiger Inhalt der Anfrage: name: ist zu kurz: mindestens 1; groups: ist zu lang: höchstens 1; days: darf höchstens 7 sein.',
  ]);
});
