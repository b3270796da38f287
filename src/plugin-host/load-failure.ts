import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { basename, dirname, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { inspect } from 'node:util';

/** Why a plugin cannot be used: where that is, and what it says. */
interface LoadFailure {
  readonly file: string;
  readonly line?: number | undefined;
  readonly message: string;
}

const longestMessage = 500;

/**
 * Explains in one line why the import of a plugin failed: the file and the line, what is wrong there,
 * and what to do about it.
 */
export async function describeLoadFailure(error: unknown, pluginFile: string): Promise<string> {
  const { file, line, message } = await explain(error, pluginFile);
  return `${file}${line === undefined ? '' : `:${line}`} ${message.slice(0, longestMessage)}`;
}

/** Explains what a plugin threw when the hub called one of its functions. */
export function describeThrown(error: unknown, pluginFile: string, what: string): string {
  const { file, line } = placeInStack(error, dirname(pluginFile)) ?? { file: pluginFile };
  const place = line === undefined ? file : `${file}:${line}`;
  return `${place} ${what}: ${textOf(error).slice(0, longestMessage)}`;
}

async function explain(error: unknown, pluginFile: string): Promise<LoadFailure> {
  if (!(error instanceof Error)) {
    return { file: pluginFile, message: `throws while it is loaded: ${textOf(error)}` };
  }
  const { code = '' } = error as NodeJS.ErrnoException;
  switch (code) {
    case 'ERR_MODULE_NOT_FOUND':
      return explainMissingImport(error, pluginFile);
    case 'ERR_PACKAGE_PATH_NOT_EXPORTED':
      return explainUnofferedImport(error, pluginFile);
    case 'EACCES':
      return { file: pluginFile, message: 'cannot be read: permission denied' };
    case 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX': {
      const message = `uses TypeScript that Node.js cannot run: ${textOf(error, false)}; write it as plain JavaScript with types`;
      return { ...(placeInHeader(error) ?? { file: pluginFile }), message };
    }
    case 'ERR_INVALID_TYPESCRIPT_SYNTAX': {
      const message = `has a syntax error: ${textOf(error, false)}`;
      return { ...(placeInHeader(error) ?? { file: pluginFile }), message };
    }
    default:
      break;
  }
  if (error instanceof SyntaxError) return await explainSyntaxError(error, pluginFile);
  const place = placeInStack(error, dirname(pluginFile)) ?? { file: pluginFile };
  return { ...place, message: `throws while it is loaded: ${textOf(error)}` };
}

function explainMissingImport(error: Error, pluginFile: string): LoadFailure {
  const [, kind = '', missing = '', importer = pluginFile] =
    /^Cannot find (package|module) '([^']*)'.* imported from (.*)$/.exec(error.message) ?? [];
  const file = importer.startsWith('file:') ? fileURLToPath(importer) : importer;
  if (kind === 'package') {
    const message = `imports the package "${missing}", which is not installed: run "npm install ${missing}" in ${dirname(file)}`;
    return {
      file,
      line: lineOf(file, (quote) => [`${quote}${missing}${quote}`, `${quote}${missing}/`]),
      message,
    };
  }
  const meant = ['.ts', '.js', '.mjs', '/index.ts', '/index.js']
    .map((ending) => missing + ending)
    .find((candidate) => existsSync(candidate));
  const hint = meant === undefined ? '' : `; did you mean "./${relative(dirname(file), meant)}"?`;
  return {
    file,
    line: lineOf(file, (quote) => [`${basename(missing)}${quote}`]),
    message: `imports ${missing}, but there is no such file${hint}`,
  };
}

/** `hub/…` is found in the program's own package, which exports only what plugins may use. */
function explainUnofferedImport(error: Error, pluginFile: string): LoadFailure {
  const [, subpath = ''] = /Package subpath '\.([^']*)'/.exec(error.message) ?? [];
  const name = `hub${subpath}`;
  const line = lineOf(pluginFile, (quote) => [`${quote}${name}${quote}`]);
  if (line === undefined)
    return { file: pluginFile, message: `cannot be loaded: ${textOf(error)}` };
  const message = `imports "${name}", which the hub does not offer to plugins; it offers hub/client, hub/plugin and hub/testing`;
  return { file: pluginFile, line, message };
}

async function explainSyntaxError(error: SyntaxError, pluginFile: string): Promise<LoadFailure> {
  const place = placeInHeader(error) ?? (await placeByChecking(pluginFile));
  const [, module, name] =
    /^The requested module '([^']*)' does not provide an export named '([^']*)'/.exec(
      error.message,
    ) ?? [];
  const message =
    module === undefined
      ? `has a syntax error: ${textOf(error, false)}`
      : `imports "${name}" from "${module}", which does not export it; if it is a type, write "import type"`;
  return { ...place, message };
}

/** The place that Node.js writes over the stack of an error of syntax: `/path/file.ts:3`. */
function placeInHeader(error: Error): { file: string; line: number } | undefined {
  const [, place = '', line = ''] = /^(\S.*):(\d+)\n/.exec(error.stack ?? '') ?? [];
  if (place === '') return undefined;
  return { file: place.startsWith('file:') ? fileURLToPath(place) : place, line: Number(line) };
}

/** An error of syntax in a module of JavaScript does not say where it is; `node --check` does. */
async function placeByChecking(file: string): Promise<{ file: string; line?: number }> {
  const { promise, resolve } = Promise.withResolvers<string>();
  execFile(process.execPath, ['--check', file], (_error, _stdout, stderr) => resolve(stderr));
  const [, place, line] = /^(\S.*):(\d+)$/m.exec(await promise) ?? [];
  return place === file && line !== undefined ? { file, line: Number(line) } : { file };
}

/** The innermost place of the plugin in the stack of an error. */
function placeInStack(error: unknown, folder: string): { file: string; line: number } | undefined {
  if (!(error instanceof Error)) return undefined;
  for (const [, url = '', line = ''] of (error.stack ?? '').matchAll(
    /\(?(file:\/\/[^\s)]+?):(\d+):\d+\)?$/gm,
  )) {
    const file = fileURLToPath(url);
    if (file.startsWith(`${folder}/`)) return { file, line: Number(line) };
  }
  return undefined;
}

/** The first line of a file, counted from 1, in which one of these texts stands with its quotes. */
function lineOf(file: string, textsWith: (quote: string) => string[]): number | undefined {
  try {
    const lines = readFileSync(file, 'utf8').split('\n');
    const texts = ["'", '"'].flatMap(textsWith);
    const index = lines.findIndex((line) => texts.some((text) => line.includes(text)));
    return index === -1 ? undefined : index + 1;
  } catch {
    // The file is gone, or is none: then its name has to do.
    return undefined;
  }
}

/** What an error says, in one line. */
function textOf(error: unknown, withName = true): string {
  let text = typeof error === 'string' ? error : inspect(error, { depth: 1 });
  if (error instanceof Error) text = withName ? String(error) : error.message;
  return text.split('\n', 1)[0] ?? '';
}
