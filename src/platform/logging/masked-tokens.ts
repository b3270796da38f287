/** An access token of the hub (`randomToken` in crypto/random.ts), wherever it stands in a text. */
const tokenPattern = /hub_[A-Za-z0-9_-]{43}/g;

/**
 * Lines of a log without the hub's own tokens: what stands before the log knows no path of a URL and no
 * message of a library that holds one. Secrets that configurations choose have no such shape; whatever
 * logs a URL or the output of a program removes those.
 */
export function withoutTokens(text: string): string {
  // Nearly every text holds none, and this is far cheaper than the pattern.
  return text.includes('hub_') ? text.replaceAll(tokenPattern, '[token]') : text;
}

/**
 * Characters beyond ASCII that command a terminal or change the order in which a line is shown (C1 controls, line
 * separators, bidirectional formatting): readers of a log must see what it says.
 */
const deceptivePattern = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;

/** Lines of a log with such characters as the escapes of JSON, which mean the same. */
export function withoutDeceptiveCharacters(text: string): string {
  return text.replaceAll(
    deceptivePattern,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
