/** What stands at the top of a page that nobody should edit. */
export const generatedNote =
  '<!-- Made by `npm run docs` from the source; change that, not this page. -->';

/** Text as it may stand in a cell of a table. */
export function cell(text: string): string {
  return escapeBars(text).replaceAll('<', '\\<');
}

/** Text set as code. */
export function code(text: string): string {
  return `\`${escapeBars(text)}\``;
}

function escapeBars(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ');
}
