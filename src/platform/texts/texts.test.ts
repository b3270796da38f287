import { describe, expect, test } from 'vitest';
import { problemOf, readCatalogue } from './catalogue.ts';
import { english, Language } from './language.ts';
import {
  joined,
  listOf,
  localizedPhrase,
  message,
  phraseIn,
  readPhrase,
  savePhrase,
  text,
  writeNumber,
  written,
} from './text.ts';

const german = new Language(
  'de',
  new Map([
    ['Hello, {0}', 'Hallo {0}'],
    ['{0} of {1}', '{1} hat {0}'],
    [
      '{count, plural, one {# token} other {# tokens}}',
      '{count, plural, one {# Token} other {# Tokens}}',
    ],
    ['state::Open', 'Offen'],
    ['Open', 'Öffnen'],
  ]),
);

describe('a text', () => {
  test('is written in the language of its reader, with its values in their order there', () => {
    expect(text`Hello, ${'Ada'}`.in(german)).toBe('Hallo Ada');
    expect(text`${text`Hello, ${'a'}`} of ${'b'}`.in(german)).toBe('b hat Hallo a');
    expect(String(text`Hello, ${'Ada'}`)).toBe('Hello, Ada');
    expect(JSON.stringify({ title: text`Hello, ${'Ada'}` })).toBe('{"title":"Hello, Ada"}');
  });

  test('is in English where there is no translation', () => {
    expect(text`Good bye, ${'Ada'}`.in(german)).toBe('Good bye, Ada');
  });

  test('agrees with numbers, and writes them as the language does', () => {
    const tokens = (count: number) =>
      message('{count, plural, one {# token} other {# tokens}}', { count });
    expect(String(tokens(1))).toBe('1 token');
    expect(tokens(1234).in(german)).toBe('1.234 Tokens');
    expect(text`${1234} of ${'4321'}`.in(german)).toBe('4321 hat 1.234');
    expect(
      message('{count, plural, one {x} other {{count}/{all}}}', { count: 2000, all: 1 }).in(german),
    ).toBe('2.000/1');
    expect(written((language) => writeNumber(0.5, language)).in(german)).toBe('0,5');
  });

  test('differs by its context', () => {
    expect(message('Open').in(german)).toBe('Öffnen');
    expect(message('Open', {}, { context: 'state' }).in(german)).toBe('Offen');
    expect(message('Open', {}, { context: 'state' }).in(english)).toBe('Open');
  });

  test('lists in words', () => {
    expect(listOf(['a', text`Hello, ${'b'}`, 'c']).in(german)).toBe('a, Hallo b und c');
    expect(String(listOf(['a', 'b', 'c'], 'disjunction'))).toBe('a, b, or c');
  });

  test('shows quotes and signs as they are', () => {
    expect(String(text`It isn't #1 <b> ${'x'}`)).toBe("It isn't #1 <b> x");
    expect(String(message("{n, plural, other {It isn't <b>#}}", { n: 2 }))).toBe("It isn't <b>2");
  });
});

describe('a phrase that is stored', () => {
  const throughJson = (phrase: Parameters<typeof savePhrase>[0]) =>
    readPhrase(JSON.parse(JSON.stringify(savePhrase(phrase))));

  test('is a key and its values, or a string that is shown as it is', () => {
    expect(savePhrase(text`${text`Hello, ${'a'}`} of ${2}`)).toEqual({
      key: '{0} of {1}',
      values: [{ key: 'Hello, {0}', values: ['a'] }, 2],
    });
    expect(savePhrase(message('Open', {}, { context: 'state' }))).toEqual({
      key: 'state::Open',
      values: {},
    });
    expect(savePhrase('Hello, Ada')).toBe('Hello, Ada');
    expect(savePhrase(written(() => 'at noon'))).toBe('at noon');
  });

  test.for([
    text`Hello, ${'Ada'}`,
    text`${text`Hello, ${'a'}`} of ${1234}`,
    message('{count, plural, one {# token} other {# tokens}}', { count: 1234 }),
    message('Open', {}, { context: 'state' }),
    joined([text`Hello, ${'a'}`, 'b (c)', text`Hello, ${text`Hello, ${'d'}`}`], ': '),
    'Hello, {0}',
  ])('reads in each language as before: %s', (phrase) => {
    for (const language of [english, german]) {
      expect(phraseIn(throughJson(phrase), language)).toBe(phraseIn(phrase, language));
    }
  });

  test.for([
    [{ key: 'Hello, {0}', values: [] }, 'Hello, {0}'],
    [{ key: 'x::Hello, {name', values: {} }, 'Hello, {name'],
    [{ key: 'Hello, {0}', values: [null] }, 'Hallo null'],
    [{ key: 'Hello' }, ''],
    [{}, ''],
    [null, 'null'],
    [7, '7'],
  ] as const)('of another version is shown as far as it goes: %j', ([saved, shown]) => {
    expect(phraseIn(readPhrase(saved), german)).toBe(shown);
  });
});

describe("a text of the operator's own", () => {
  const inAll = { fr: 'Bonjour', en: 'Hello', de: 'Hallo', 'pt-BR': 'Oi' };
  const shown = (own: Parameters<typeof localizedPhrase>[0], tag: string, defaultTag?: string) =>
    phraseIn(localizedPhrase(own), new Language(tag, new Map(), undefined, defaultTag));

  test.for<[string, string | undefined, string]>([
    ['de', undefined, 'Hallo'],
    ['de-AT', undefined, 'Hallo'],
    ['pt-BR', undefined, 'Oi'],
    // Nobody who reads Portuguese is helped by what is for Brazil alone.
    ['pt', undefined, 'Hello'],
    ['it', 'de', 'Hallo'],
    ['it', 'ja', 'Bonjour'],
  ])('is shown to readers of %s on a hub in %s as %j', ([tag, defaultTag, expected]) => {
    expect(shown(inAll, tag, defaultTag)).toBe(expected);
  });

  test('that is one for all is the same to all, and English to programs', () => {
    expect(shown('Moin', 'fr')).toBe('Moin');
    expect(String(localizedPhrase(inAll))).toBe('Hello');
  });
});

describe('a catalogue', () => {
  const known = (key: string) => ['Log in', 'Hello, {0}'].includes(key);

  test('leaves out what is wrong and says what it is', () => {
    const json = JSON.stringify({ 'Log in': 'Anmelden', 'Hello, {0}': 'Hallo', Nothing: 'x' });
    const { translations, problems } = readCatalogue(json, known);
    expect([...translations]).toEqual([['Log in', 'Anmelden']]);
    expect(problems).toEqual([
      { key: 'Hello, {0}', line: 1, message: 'lacks the placeholder {0}' },
      { key: 'Nothing', line: 1, message: expect.stringContaining('hub texts') },
    ]);
  });

  test.for(['{', '[]', 'null', '"text"'])('must be an object in JSON, not %s', (json) => {
    const { translations, problems } = readCatalogue(json, known);
    expect(translations.size).toBe(0);
    expect(problems).toHaveLength(1);
  });

  test.for([
    ['Log in', 5, 'must be a string'],
    ['Log in', ' ', 'must not be empty'],
    ['Log in', '{0} x', 'it has none'],
    ['Hello, {0}', '{0} {name}', '{name}'],
    ['Hello, {0}', '{0} {', 'ICU'],
    ['Hello, {0}', '{0, plural, one {x}}', 'ICU'],
  ] as const)('of %s, %j is refused', ([key, translation, problem]) => {
    expect(problemOf(key, translation)).toContain(problem);
  });

  test('takes a message where English needs none', () => {
    expect(problemOf('Hello, {0}', '{0, plural, one {x #} other {y #}}')).toBeUndefined();
  });
});
