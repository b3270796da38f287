import { setImmediate } from 'node:timers/promises';
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
 * without quotes and a byte order mark. `unclosed` is the line whose quotation mark has no other one. The process does
 * other work meanwhile.
 */
export async function readCsv(csv: string): Promise<{
  readonly lines: readonly CsvLine[];
  readonly unclosed?: number;
}> {
  let rest = csv.replace(/^\uFEFF/, '');
  // Its own guess needs empty lines left out, and with them their numbers.
  const delimiter = delimiterOf(rest);
  let newline: papa.ParseConfig['newline'];
  const lines: CsvLine[] = [];
  for (let line = 0; rest !== ''; ) {
    // The faster way would look at all that is left for each part.
    const { data, errors, meta } = papa.parse<string[]>(rest, {
      delimiter,
      ...(newline && { newline }),
      fastMode: false,
      preview: partLength,
    });
    const quote = errors.find(({ type }) => type === 'Quotes');
    if (quote !== undefined) return { lines, unclosed: line + (quote.row ?? 0) + 1 };
    for (const row of data) {
      line += 1;
      const cells = row.map((cell) => cell.trim());
      if (cells.some((cell) => cell !== '')) lines.push({ line, cells });
    }
    newline = meta.linebreak as typeof newline;
    rest = meta.truncated ? rest.slice(meta.cursor) : '';
    await setImmediate();
  }
  return { lines };
}

/** Lines that are read at once. */
const partLength = 1000;

/** The one that is most often in the first line that has any, outside of quotes; a comma for none. */
function delimiterOf(text: string): string {
  const line = /^.*[,;\t].*$/m.exec(text.replaceAll(/"[^"]*"/g, ''))?.[0] ?? '';
  const count = (delimiter: string) => line.split(delimiter).length;
  return [',', ';', '\t'].reduce((best, each) => (count(each) > count(best) ? each : best));
}
