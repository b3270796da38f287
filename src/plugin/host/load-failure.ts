import { execFile } from 'node:child_process';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { inspect } from 'node:util';

const maxMessageLength = 500;

/** The way out, where Node.js does not name it. */
const hints: readonly (readonly [error: RegExp, hint: string])[] = [
  [/^Cannot find package /, 'install it there'],
  [/^Cannot find module /, 'name an existing file, with its extension'],
  [
    / "exports" /,
    'plugins may import @hub-gateway/hub/client, @hub-gateway/hub/plugin and @hub-gateway/hub/testing',
  ],
  [/ does not provide an export named /, 'if it is a type, write "import type"'],
  [/ strip-only mode/, 'write it as plain JavaScript with types'],
];

/** Says in one line why the import of a plugin failed: the place, and the error as Node.js words it. */
export async function describeLoadFailure(error: unknown, pluginFile: string): Promise<string> {
  const [, hint] = hints.find(([pattern]) => pattern.test(textOf(error))) ?? [];
  const isPlaced = !(error instanceof SyntaxError) || placeInHeader(error) !== undefined;
  const file = isPlaced ? pluginFile : await placeByChecking(pluginFile);
  const described = describeThrown(error, file, 'cannot be loaded');
  return hint === undefined ? described : `${described}; ${hint}`;
}

/** Says in one line what a plugin threw when the hub called one of its functions, and where. */
export function describeThrown(error: unknown, pluginFile: string, what: string): string {
  const place = placeInHeader(error) ?? placeInStack(error, dirname(pluginFile)) ?? pluginFile;
  return `${place} ${what}: ${textOf(error).slice(0, maxMessageLength)}`;
}

/** The place that Node.js writes over the stack of an error of syntax: `/path/file.ts:3`. */
function placeInHeader(error: unknown): string | undefined {
  const { stack = '' } = error instanceof Error ? error : {};
  const [, file = '', line = ''] = /^((?:file:\/)?\/.*)(:\d+)\n/.exec(stack) ?? [];
  return file === '' ? undefined : pathOf(file) + line;
}

/** The innermost place of the plugin in the stack of an error. */
function placeInStack(error: unknown, folder: string): string | undefined {
  const { stack = '' } = error instanceof Error ? error : {};
  return [...stack.matchAll(/\(?(file:\/\/[^\s)]+?)(:\d+):\d+\)?$/gm)]
    .map(([, url = '', line = '']) => pathOf(url) + line)
    .find((place) => place.startsWith(`${folder}/`));
}

/** An error of syntax in a module of JavaScript does not say where it is; `node --check` does. */
async function placeByChecking(file: string): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  execFile(process.execPath, ['--check', file], (_error, _stdout, stderr) => resolve(stderr));
  const [place] = /^\S.*:\d+$/m.exec(await promise) ?? [];
  return place?.startsWith(`${file}:`) === true ? place : file;
}

function pathOf(file: string): string {
  return file.startsWith('file:') ? fileURLToPath(file) : file;
}

/** What an error says, in one line. */
function textOf(error: unknown): string {
  let text = typeof error === 'string' ? error : inspect(error, { depth: 1 });
  // The code of an error of Node.js would add nothing.
  if (error instanceof Error) text = 'code' in error ? error.message : String(error);
  return text.split('\n', 1)[0] ?? '';
}
