import { HubError } from '../../platform/errors.ts';
import { type Text, text } from '../../platform/texts/text.ts';

/** Characters of the name of a user or a group. */
export const maxNameLength = 255;
/**
 * Characters of the name of a user in a URL: 255 of two bytes each. Redirects of a login repeat it several
 * times, and Node.js takes no head of more than 16 KiB.
 */
const maxLengthInUrl = 1_530;

/** Brings a user's name into the one form in which it is stored and compared (Unicode NFC). */
export function normaliseUserName(name: string): string {
  return name.normalize('NFC');
}

/** Returns the normalised name, or throws a `bad_request` that says why it cannot be a user's. */
export function validateUserName(name: string): string {
  return validateName(normaliseUserName(name), 'user');
}

/** Returns the normalised name, or throws a `bad_request` that says why it cannot be a group's. */
export function validateGroupName(name: string): string {
  return validateName(name.normalize('NFC'), 'group');
}

function validateName(name: string, kind: 'user' | 'group'): string {
  const problem = problemOf(name) ?? (kind === 'user' ? problemInUrl(name) : undefined);
  if (problem === undefined) return name;
  // The name itself stays out of the message: it may be long or hold control characters.
  throw new HubError(
    'bad_request',
    kind === 'user'
      ? text`This cannot be the name of a user: it ${problem}.`
      : text`This cannot be the name of a group: it ${problem}.`,
  );
}

function problemOf(name: string): Text | undefined {
  if (name === '') return text`is empty`;
  if ([...name].length > maxNameLength)
    return text`is longer than ${String(maxNameLength)} characters`;
  // Browsers turn a backslash in a path into a slash.
  if (/[/\\]/.test(name)) return text`holds a slash or a backslash`;
  // A browser would take them out of the path.
  if (name === '.' || name === '..') return text`is a relative path`;
  if (!name.isWellFormed()) return text`is not well-formed text`;
  if (/[\p{Cc}\p{Zl}\p{Zp}]/u.test(name)) return text`holds a control character`;
  if (name.trim() !== name) return text`begins or ends with a space`;
  return undefined;
}

function problemInUrl(name: string): Text | undefined {
  return encodeURIComponent(name).length > maxLengthInUrl
    ? text`is longer than ${String(maxLengthInUrl)} characters in a URL`
    : undefined;
}
