import { array, assert, asyncProperty, string } from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../../../test/support/properties.ts';
import { readCsv } from '../../platform/protocol/csv.ts';
import { toCsv } from './csv.ts';

test('a CSV file keeps quotes, commas and lines apart', () => {
  expect(
    toCsv([
      ['User', 'Link'],
      ['zoë "z", ö', 'a\nb'],
    ]),
  ).toBe('\uFEFF"User","Link"\r\n"zoë ""z"", ö","a\nb"\r\n');
});

test.for(['=1+1', '+1', '-1', '@SUM(A1)', '\t=1', '\r=1', '\n=1'])(
  'a spreadsheet does not take %j for a formula',
  (name) => {
    expect(toCsv([[name]])).toBe(`\uFEFF"'${name}"\r\n`);
  },
);

test('whatever is written is read back, but for the mark before what looks like a formula', async () => {
  const cell = string({ unit: 'binary' }).map((text) => `x${text}y`);
  await assert(
    asyncProperty(
      array(array(cell, { minLength: 2, maxLength: 2 }), { minLength: 1 }),
      async (rows) => {
        const { lines } = await readCsv(toCsv(rows));
        expect(lines.map(({ cells }) => cells)).toEqual(rows);
      },
    ),
    runs(200),
  );
  await assert(
    asyncProperty(string({ unit: 'binary' }), async (text) => {
      const { lines } = await readCsv(toCsv([['name'], [text]]));
      const read = lines[1]?.cells[0] ?? '';
      expect(read).not.toMatch(/^[=+\-@]/);
      expect([text.trim(), `'${text}`.trim()]).toContain(read);
    }),
    runs(300),
  );
});
