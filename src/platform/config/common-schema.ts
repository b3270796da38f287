import { z } from 'zod';
import { type Phrase, Text, text } from '../texts/text.ts';

/** What a refinement says: in English for the configuration, and a text for pages, which `issueProblem` finds. */
export function says(problem: Text) {
  return { error: () => String(problem), params: { text: problem } };
}

/** What is wrong, as pages show it. */
export function issueProblem(issue: z.core.$ZodIssue | undefined): Phrase | undefined {
  if (issue?.code === 'invalid_key') return issueProblem(issue.issues[0]);
  if (issue?.code === 'too_small' || issue?.code === 'too_big') return sizeProblem(issue);
  const said: unknown = issue?.code === 'custom' ? issue.params?.['text'] : undefined;
  return said instanceof Text ? said : issue?.message;
}

function sizeProblem({
  code,
  origin,
  ...issue
}: z.core.$ZodIssueTooSmall | z.core.$ZodIssueTooBig): Text {
  const limit = Number('minimum' in issue ? issue.minimum : issue.maximum);
  const isNumber = origin === 'number' || origin === 'int';
  if (code === 'too_small')
    return isNumber ? text`must be at least ${limit}` : text`is too short: at least ${limit}`;
  return isNumber ? text`must be at most ${limit}` : text`is too long: at most ${limit}`;
}

/** A duration in seconds; fractions are allowed. */
export const seconds = z.number().nonnegative();

/** A whole number that is zero or more. */
export const count = z.int().nonnegative();

/** What a named server can be called: 1 to 30 of a-z, 0-9 and single hyphens, a letter first. */
export const serverNamePattern = /^(?=.{1,30}$)[a-z](?:-?[a-z0-9])*$/;

/** A size in bytes, as a number or with a binary suffix: `"512K"`, `"1.5G"`. */
export const byteSize = z
  .union([
    z.int().nonnegative(),
    z.string().regex(/^\d+(\.\d+)?[KMGT]?$/, 'use a number of bytes or a suffix K, M, G or T'),
  ])
  .transform((size) => (typeof size === 'number' ? size : parseByteSize(size)));

/**
 * A secret as it stands in the file: the text itself, `{"env": "NAME"}` or `{"file": "path"}`.
 * `config/secrets.ts` turns it into a `Secret` before anything else sees it.
 */
export const secretReference = z.union(
  [
    z.string().min(1),
    z.strictObject({ env: z.string().min(1) }),
    z.strictObject({ file: z.string().min(1) }),
  ],
  'must be text, {"env": "NAME"} or {"file": "path"}',
);

/** A URL that may hold a password, and so may be given like any other secret. */
export function secretUrl(pattern: RegExp, message: string) {
  return orReference(z.string().regex(pattern, message), message);
}

/** Text, or where it stands: `{"env": "NAME"}` or `{"file": "path"}`. `config/secrets.ts` resolves it. */
export function orReference<T extends z.ZodType<string, string>>(text: T, message: string) {
  return z.union(
    [text, z.strictObject({ env: z.string().min(1) }), z.strictObject({ file: z.string().min(1) })],
    { error: (issue) => (typeof issue.input === 'string' ? message : undefined) },
  );
}

/** Environment variables as names to values; numbers and booleans become text. */
export const environment = z.record(
  z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'is not a name for an environment variable'),
  z.union([z.string(), z.number(), z.boolean()]).transform(String),
);

/** A command as one string, split at white space outside quotes, or as a list of arguments. */
export const command = z
  .union([z.string().min(1), z.array(z.string()).min(1)])
  .transform(toArguments);

/** An absolute http or https URL. */
export const httpUrl = z.string().refine(isHttpUrl, says(text`is not an http:// or https:// URL`));

function isHttpUrl(text: string): boolean {
  const url = URL.parse(text);
  return (
    url !== null && (url.protocol === 'http:' || url.protocol === 'https:') && url.hostname !== ''
  );
}

function parseByteSize(text: string): number {
  const power = { K: 1, M: 2, G: 3, T: 4 }[text.at(-1) ?? ''] ?? 0;
  return Math.round(Number.parseFloat(text) * 1024 ** power);
}

/** Splits a command line as a POSIX shell would split plain words: quotes group, nothing expands. */
export function toArguments(text: string | string[]): string[] {
  if (Array.isArray(text)) return text;
  const words = text.matchAll(/(?:[^\s"']+|"[^"]*"|'[^']*')+/g);
  return [...words].map(([word]) => word.replaceAll(/"([^"]*)"|'([^']*)'/g, '$1$2'));
}
/** Cores of a processor, of which there may be parts. */
export const cores = z.number().positive();

/** Whether a URL can be listened at. */
export function isBindUrl(text: string, protocols: RegExp): boolean {
  const url = URL.parse(text);
  return url !== null && protocols.test(url.protocol) && url.search === '' && url.hash === '';
}

/** Where the hub listens by plain http. */
export const bindUrl = z
  .string()
  .refine(
    (text) => isBindUrl(text, /^http:$/),
    'is not an http:// URL without query or fragment, such as http://127.0.0.1:8080/',
  );
