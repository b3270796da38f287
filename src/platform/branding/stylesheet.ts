/** What is wrong with a stylesheet, with the line, counted from 1. */
export interface StylesheetProblem {
  readonly line: number;
  readonly message: string;
}

const piece =
  /(\/\*[\s\S]*?(?:\*\/|$))|@import\s+(?:url\(\s*)?["']?([^"')\s;]+)|url\(\s*["']?([^"')\s]+)|("(?:[^"\\\n]|\\[\s\S])*"|'(?:[^'\\\n]|\\[\s\S])*')|([{}])/gi;

/** Finds what browsers would not do: load from other hosts, or go on after a brace that is never closed. */
export function findStylesheetProblems(text: string): StylesheetProblem[] {
  const problems: StylesheetProblem[] = [];
  const open: number[] = [];
  for (const match of text.matchAll(piece)) {
    const [whole, comment, imported, loaded, , brace] = match;
    const report = (message: string) => problems.push({ line: lineAt(text, match.index), message });
    if (comment !== undefined && !(comment.length > 3 && comment.endsWith('*/')))
      report('this comment is never closed; end it with */');
    const address = imported ?? loaded;
    if (address !== undefined && !isOwnAddress(address)) {
      const what = whole.startsWith('@') ? '@import' : 'url()';
      report(
        `${what} of ${address} is blocked by browsers, which load pages of the hub from the hub alone; put the content into this file`,
      );
    }
    if (brace === '{') open.push(match.index);
    if (brace === '}' && open.pop() === undefined) report('this } closes nothing; remove it');
  }
  for (const index of open)
    problems.push({ line: lineAt(text, index), message: 'this { is never closed; add a }' });
  return problems.toSorted((left, right) => left.line - right.line);
}

/** Of this site, or in the stylesheet itself. */
function isOwnAddress(address: string): boolean {
  if (/^data:/i.test(address)) return true;
  return URL.parse(address, 'https://hub.invalid/')?.host === 'hub.invalid';
}

/** The line of a place in a text, counted from 1. */
export function lineAt(text: string, index: number): number {
  let line = 1;
  for (let at = text.indexOf('\n'); at !== -1 && at < index; at = text.indexOf('\n', at + 1))
    line += 1;
  return line;
}
