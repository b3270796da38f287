import { describe, expect, test } from 'vitest';
import { problemOf, readCatalogue } from './catalogue.ts';
import { english, Language } from './language.ts';
import { ownPhrase } from './own-text.ts';
import { listOf, message, phraseIn, text, translated, writeNumber, written } from './text.ts';

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

describe("a text of the operator's own", () => {
  const inAll = { fr: 'Bonjour', en: 'Hello', de: 'Hallo', 'pt-BR': 'Oi' };
  const shown = (own: Parameters<typeof ownPhrase>[0], tag: string, defaultTag?: string) =>
    phraseIn(ownPhrase(own), new Language(tag, new Map(), undefined, defaultTag));

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
    expect(String(ownPhrase(inAll))).toBe('Hello');
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

  test('takes what plugins say, where that can be told from other texts', () => {
    const written = {
      'plugin::The GPU queue {0} is full.': 'Die GPU-Warteschlange {0} ist voll.',
      'plugin::Waiting for {0, number} {what}.': 'Warten auf {0, number} {what}.',
      'plugin::Queued': 'Wartet',
      'plugin::A brace { that never ends.': 'x',
      'plugin::There is no room left.': 'Kein Platz {0}.',
      'role::Unknown to all.': 'x',
    };
    const { translations, problems } = readCatalogue(JSON.stringify(written), () => false);
    expect([...translations.keys()]).toEqual(Object.keys(written).slice(0, 2));
    expect(problems.map(({ key, message }) => `${key}: ${message}`)).toEqual([
      expect.stringMatching(/^plugin::Queued: has too few words/),
      expect.stringMatching(/^plugin::A brace { that never ends\.: is no ICU message itself/),
      expect.stringMatching(/^plugin::There is no room left\.: has the placeholder {0}/),
      expect.stringMatching(/^role::Unknown to all\.: is not a text of this version/),
    ]);
    const german = new Language('de', translations);
    const said = translated('The GPU queue a100 is full.');
    expect(said.in(german)).toBe('Die GPU-Warteschlange a100 ist voll.');
    expect(translated('Waiting for 1,200 GPUs.').in(german)).toBe('Warten auf 1.200 GPUs.');
  });

  test('takes a message where English needs none', () => {
    expect(problemOf('Hello, {0}', '{0, plural, one {x #} other {y #}}')).toBeUndefined();
  });
});
