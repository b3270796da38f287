import { array, assert, asyncProperty, constantFrom, oneof, string } from 'fast-check';
import papa from 'papaparse';
import { expect, test } from 'vitest';
import { runs } from '../../../test/support/properties.ts';
import { decodeCsv, readCsv } from './csv.ts';

const cellsOf = async (csv: string) => (await readCsv(csv)).lines.map(({ cells }) => cells);

test.for([
  ['name,email\nada,ada@example.org\n'],
  ['\uFEFFname;email\r\nada;ada@example.org\r\n'],
  ['"name"\t"email"\n\n"ada"\t ada@example.org \n'],
])('%j is read as a table of two columns', async ([csv]) => {
  expect(await cellsOf(csv ?? '')).toEqual([
    ['name', 'email'],
    ['ada', 'ada@example.org'],
  ]);
});

test('a line keeps its number when those before it are empty, and a name its comma when it is quoted', async () => {
  expect((await readCsv('ada\n\n;\n"Lovelace, ""Ada"""')).lines).toEqual([
    { line: 1, cells: ['ada'] },
    { line: 4, cells: ['Lovelace, "Ada"'] },
  ]);
});

test('a quotation mark that is not closed is found, whatever it swallows', async () => {
  expect((await readCsv('a,b\nada,"x\nbob,y\n')).unclosed).toBe(2);
  expect((await readCsv('a,b\nada,"x"\n')).unclosed).toBeUndefined();
});

test('a table of 100,000 lines is read in parts, whose lines keep their numbers', async () => {
  const table = Array.from({ length: 100_000 }, (_, index) => `name${index},"a, b\r\nc"`);
  table[99_998] = '';
  let turns = 0;
  const counted = setInterval(() => (turns += 1), 0);
  const { lines } = await readCsv(table.join('\r\n'));
  clearInterval(counted);
  expect(lines.length).toBe(99_999);
  expect(lines.at(-1)).toEqual({ line: 100_000, cells: ['name99999', 'a, b\r\nc'] });
  // Others had their turn meanwhile.
  expect(turns).toBeGreaterThan(20);
});

test('whatever is written as a table is read back', async () => {
  const cell = string().map((text) => text.replaceAll(/^\uFEFF/g, '').trim());
  const rows = array(array(cell, { minLength: 2, maxLength: 2 }), { minLength: 2, maxLength: 8 });
  await assert(
    asyncProperty(rows, constantFrom(',', ';', '\t'), async (table, delimiter) => {
      const filled = table.map(([first, second]) => [`x${first}`, `${second}y`]);
      const csv = papa.unparse(filled, { delimiter, quotes: true });
      expect(await cellsOf(csv)).toEqual(filled);
    }),
    runs(100),
  );
});

test('any text is read, each line with its number and no space around a cell', async () => {
  const piece = oneof(string(), constantFrom(',', ';', '\t', '"', '""', '\n', '\r\n', '\uFEFF'));
  await assert(
    asyncProperty(array(piece), async (pieces) => {
      let before = 0;
      for (const { line, cells } of (await readCsv(pieces.join(''))).lines) {
        expect(line).toBeGreaterThan(before);
        expect(cells.some((cell) => cell !== '')).toBe(true);
        expect(cells).toEqual(cells.map((cell) => cell.trim()));
        before = line;
      }
    }),
    runs(300),
  );
});

test.each(['utf8', 'utf16le', 'latin1'] as const)(
  'a file of %s is read as it was written',
  async (encoding) => {
    const mark = encoding === 'latin1' ? '' : '\uFEFF';
    const bytes = Buffer.from(`${mark}Zoë;Müller`, encoding);
    expect((await readCsv(decodeCsv(bytes))).lines).toEqual([
      { line: 1, cells: ['Zoë', 'Müller'] },
    ]);
  },
);
