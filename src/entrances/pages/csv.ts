/** A CSV file (RFC 4180) that spreadsheets take as text: no cell begins as a formula does. */
export function toCsv(rows: readonly (readonly string[])[]): string {
  // The mark tells spreadsheets that it is UTF-8.
  return `\uFEFF${rows.map((row) => `${row.map(cell).join(',')}\r\n`).join('')}`;
}

function cell(text: string): string {
  const harmless = /^[=+\-@\t\r\n]/.test(text) ? `'${text}` : text;
  return `"${harmless.replaceAll('"', '""')}"`;
}
