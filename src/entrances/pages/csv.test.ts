import { expect, test } from 'vitest';
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
