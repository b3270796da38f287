import papa from 'papaparse';

/** A line of a table that has something in it. */
export interface CsvLine {
  /** Counted from 1; a cell with line breaks in it counts as one line. */
  readonly line: number;
  /** Without the spaces around them. */
  readonly cells: readonly string[];
}

/** The text of a file that a spreadsheet wrote: UTF-8, UTF-16 with its mark or, else, Windows-1252. */
export function decodeCsv(bytes: Uint8Array): string {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return new TextDecoder('utf-16le').decode(bytes);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return new TextDecoder('windows-1252').decode(bytes);
  }
}

/**
 * Reads a table as spreadsheets write it (RFC 4180): between commas, semicolons or tabs, whichever it is, with or
 * without quotes and a byte order mark. `unclosed` is the line whose quotation mark has no other one.
 */
export function readCsv(csv: string): {
  readonly lines: readonly CsvLine[];
  readonly unclosed?: number;
} {
  // Its own guess needs empty lines left out, and with them their numbers.
  const { data, errors } = papa.parse<string[]>(csv, { delimiter: delimiterOf(csv) });
  const lines = data
    .map((cells, index) => ({ line: index + 1, cells: cells.map((cell) => cell.trim()) }))
    .filter(({ cells }) => cells.some((cell) => cell !== ''));
  const quote = errors.find(({ type }) => type === 'Quotes');
  return quote === undefined ? { lines } : { lines, unclosed: (quote.row ?? 0) + 1 };
}

/** The one that is most often in the first line that has any, outside of quotes; a comma for none. */
function delimiterOf(text: string): string {
  const line = /^.*[,;\t].*$/m.exec(text.replaceAll(/"[^"]*"/g, ''))?.[0] ?? '';
  const count = (delimiter: string) => line.split(delimiter).length;
  return [',', ';', '\t'].reduce((best, each) => (count(each) > count(best) ? each : best));
}
