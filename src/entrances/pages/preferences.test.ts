import { expect, test } from 'vitest';
import { changePreferences, preferencesValue, readPreferences } from './preferences.ts';

const none = { theme: 'system', language: undefined };

test.for([
  [undefined, none],
  ['', none],
  ['hub-preferences=theme=dark&language=de', { theme: 'dark', language: 'de' }],
  ['a=b; hub-preferences="theme=light"', { theme: 'light', language: undefined }],
  ['__Host-hub-preferences=language=pt-BR', { theme: 'system', language: 'pt-BR' }],
  ['hub-preferences=theme=pink&language=%22%3E%3Cb%3E', none],
  ['hub-preferences=%; hub-preferences=theme=dark', { theme: 'dark', language: undefined }],
  [`hub-preferences=language=${'de-'.repeat(50)}`, none],
] as const)('the header %j holds %j', ([header, preferences]) => {
  expect(readPreferences(header)).toEqual(preferences);
});

test('a form changes what it names, and leaves the rest', () => {
  const before = { theme: 'dark', language: 'de' } as const;
  const after = (form: string) => changePreferences(before, new URLSearchParams(form));
  expect(after('')).toEqual(before);
  expect(after('theme=light')).toEqual({ theme: 'light', language: 'de' });
  expect(after('language=')).toEqual({ theme: 'dark', language: undefined });
  expect(() => after('theme=pink')).toThrow('There is no such theme.');
  expect(() => after('language=<b>')).toThrow('not the code of a language');
});

test('what is chosen can be read again, and nothing chosen is nothing', () => {
  const chosen = { theme: 'light', language: 'de' } as const;
  expect(readPreferences(`hub-preferences=${preferencesValue(chosen)}`)).toEqual(chosen);
  expect(preferencesValue({ theme: 'system' })).toBe('');
});
