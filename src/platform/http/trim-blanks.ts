/**
 * A header value without the blanks around it (RFC 9110 §5.6.3: spaces and tabs). `trim()` takes more: line feeds, and
 * the last byte of “à” in UTF-8, which Latin-1 reads as a no-break space.
 */
export function trimBlanks(value: string): string {
  let start = 0;
  let end = value.length;
  while (start < end && isBlank(value[start])) start += 1;
  while (end > start && isBlank(value[end - 1])) end -= 1;
  return value.slice(start, end);
}

const isBlank = (character: string | undefined) => character === ' ' || character === '\t';
