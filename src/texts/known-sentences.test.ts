import { describe, expect, test } from 'vitest';
import { sentences } from './known-sentences.ts';
import { english } from './language.ts';
import { loadLanguages } from './languages.ts';
import { phraseIn, type Text, type TextValue, translated } from './text.ts';

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
      'Der Server ist nicht innerhalb von 2,5 Sekunden gestartet. Warten auf Speicherplatz: 0/3 nodes.',
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
    [
      'Pulling the image a/b:1: 1 of 1 layers, 0.4 of 1,234.5 MB.',
      'Das Image a/b:1 wird geladen: 1 von 1 Schicht, 0,4 von 1.234,5 MB.',
    ],
    ['exited with code 1 after 2.5 s', 'nach 2,5 s mit Exitcode 1 beendet'],
    [
      'The server ended: its node n1 was shut down.',
      'Der Server hat sich beendet: sein Knoten n1 wurde heruntergefahren.',
    ],
    [
      'The server did not start: its node evicted it: low on memory.',
      'Der Server ist nicht gestartet: sein Knoten hat ihn verdrängt: low on memory.',
    ],
    [
      'Pulling the image a/b:1. It has taken 30 seconds so far.',
      'Das Image a/b:1 wird geladen. Das dauert bisher 30 Sekunden.',
    ],
    [
      'The hook "quota" failed before the start: no answer within 1 second',
      'Der Hook „quota“ ist vor dem Start fehlgeschlagen: keine Antwort innerhalb von 1 Sekunde',
    ],
    [
      'Waiting in the queue of the partition gpu, 22nd of 1,234: others come first (Priority). Slurm expects it to start at 2030-01-02 03:04:05.',
      'Warten in der Warteschlange der Partition gpu, Platz 22 von 1.234: andere sind vorher an der Reihe (Priority). Slurm erwartet den Start am 2030-01-02 03:04:05.',
    ],
    [
      'The server ended: the job reached its time limit of 1 day 2 hours.',
      'Der Server hat sich beendet: der Job hat sein Zeitlimit von 1 Tag 2 Stunden erreicht.',
    ],
    [
      'The container engine at unix:///x does not answer: it is not running.',
      'Die Container-Engine unter unix:///x antwortet nicht: sie läuft nicht.',
    ],
    ['{0} is a node: x', '{0} is a node: x'],
    ['It took 30 seconds', 'It took 30 seconds'],
    ['The server ended: a disk failed.', 'Der Server hat sich beendet: a disk failed.'],
    ['The disk failed.', 'The disk failed.'],
    ['Server requested. And more.', 'Server requested. And more.'],
  ] as const)('%s', ([said, shown]) => {
    expect(phraseIn(translated(said), german)).toBe(shown);
    expect(String(translated(said))).toBe(said);
  });
});
