import { describe, expect, test } from 'vitest';
import { sentences, startStepsIn, translated } from './known-sentences.ts';
import { english } from './language.ts';
import { loadLanguages } from './languages.ts';
import { phraseIn, type Text, type TextValue } from './text.ts';

const german = (await loadLanguages()).find('de') ?? english;
const all = Object.entries<(...values: TextValue[]) => Text>(sentences);

describe.each(all)('the sentence %s', (_, sentence) => {
  const values = Array.from({ length: sentence.length }, (_each, index) => `${index + 2}.5`);

  test('is known again by its English, which stays as it is', () => {
    const said = String(sentence(...values));
    expect(String(translated(said))).toBe(said);
    expect(phraseIn(translated(said), german)).toBe(sentence(...values).in(german));
    expect(sentence(...values).in(german)).not.toBe(said);
  });
});

describe('a string of elsewhere', () => {
  test.for([
    [
      'The server ended: its pod was deleted.',
      'Der Server hat sich beendet: sein Pod wurde gelöscht.',
    ],
    [
      'The server did not start within 30 seconds. The last step: Pulling the image a/b:1: 1 of 2 layers.',
      'Der Server ist nicht innerhalb von 30 Sekunden gestartet. Der letzte Schritt: Das Image a/b:1 wird geladen: 1 von 2 Schichten.',
    ],
    [
      'The server did not start within 1 second.',
      'Der Server ist nicht innerhalb von 1 Sekunde gestartet.',
    ],
    [
      'The server did not start within 1 second. The last step: The server is starting.',
      'Der Server ist nicht innerhalb von 1 Sekunde gestartet. Der letzte Schritt: Der Server startet.',
    ],
    [
      'The server did not start within 2.5 seconds. Waiting for storage: 0/3 nodes.',
      'Der Server ist nicht innerhalb von 2.5 Sekunden gestartet. Warten auf Speicherplatz: 0/3 nodes.',
    ],
    [
      'The server started but did not answer within 1 second: nothing listens on http://a/.',
      'Der Server ist gestartet, hat aber nicht innerhalb von 1 Sekunde geantwortet: unter http://a/ ist nichts erreichbar.',
    ],
    [
      'The image a/b:1 was not pulled within 1 second.',
      'Das Image a/b:1 wurde nicht innerhalb von 1 Sekunde geladen.',
    ],
    [
      'The server did not start: its pod is gone.',
      'Der Server ist nicht gestartet: sein Pod ist weg.',
    ],
    ['It took 30 seconds', 'It took 30 seconds'],
    ['The server ended: a disk failed.', 'Der Server hat sich beendet: a disk failed.'],
    ['The disk failed.', 'The disk failed.'],
    ['Server requested. And more.', 'Server requested. And more.'],
  ] as const)('%s', ([said, shown]) => {
    expect(phraseIn(translated(said), german)).toBe(shown);
    expect(String(translated(said))).toBe(said);
  });
});

test('a script is given how the steps of a start read', () => {
  expect(startStepsIn(english)).toEqual([]);
  const read = (said: string) => {
    for (const [source, shown] of startStepsIn(german)) {
      const match = new RegExp(source).exec(said);
      if (match !== null) return [shown, ...match.slice(1)];
    }
    return undefined;
  };
  expect(read('The program is started.')).toEqual(['Das Programm ist gestartet.']);
  expect(read('The job 5 runs on a node.')).toEqual(['Der Job {0} läuft auf {1}.', '5', 'a node']);
});
