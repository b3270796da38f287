import {
  getNodeValue,
  type Node,
  type ParseError,
  parseTree,
  printParseErrorCode,
} from 'jsonc-parser';
import type { ConfigProblem } from '../errors.ts';
import { formatPath } from './problem-path.ts';

export interface JsoncDocument {
  /** Undefined when the text is not JSON. */
  readonly value: unknown;
  readonly problems: readonly ConfigProblem[];
}

/**
 * Reads JSON with comments and trailing commas. Beside syntax errors, with their line and column, it
 * reports keys that stand twice: JSON.parse would silently keep only the last of them.
 */
export function readJsonc(text: string): JsoncDocument {
  const source = text.startsWith('\uFEFF') ? text.slice(1) : text;
  const errors: ParseError[] = [];
  const tree = parseTree(source, errors, { allowTrailingComma: true });

  if (source.trim() === '')
    return { value: undefined, problems: [{ path: '', message: 'is empty' }] };
  if (errors.length > 0 || tree === undefined) {
    return { value: undefined, problems: describeSyntaxErrors(errors, source) };
  }

  const problems: ConfigProblem[] = [];
  collectKeyProblems(tree, [], source, problems);
  return { value: getNodeValue(tree), problems };
}

function collectKeyProblems(
  node: Node,
  path: readonly (string | number)[],
  source: string,
  problems: ConfigProblem[],
): void {
  if (node.type === 'array') {
    for (const [index, child] of (node.children ?? []).entries()) {
      collectKeyProblems(child, [...path, index], source, problems);
    }
  }
  if (node.type !== 'object') return;

  const firstOffsets = new Map<string, number>();
  for (const property of node.children ?? []) {
    const [keyNode, valueNode] = property.children ?? [];
    if (keyNode === undefined) continue;
    const key = String(keyNode.value);
    const keyPath = [...path, key];
    const firstOffset = firstOffsets.get(key);
    if (firstOffset !== undefined) {
      const places = `${positionOf(source, firstOffset)} and ${positionOf(source, keyNode.offset)}`;
      problems.push({ path: formatPath(keyPath), message: `stands twice: ${places}` });
    }
    if (key === '__proto__') {
      problems.push({ path: formatPath(keyPath), message: 'is not allowed as a key' });
    }
    firstOffsets.set(key, keyNode.offset);
    if (valueNode !== undefined) collectKeyProblems(valueNode, keyPath, source, problems);
  }
}

function positionOf(source: string, offset: number): string {
  const before = source.slice(0, offset);
  const line = before.split('\n').length;
  return `line ${line}:${offset - before.lastIndexOf('\n')}`;
}

/** One problem a line: what follows a syntax error on its line is mostly its echo. */
function describeSyntaxErrors(errors: readonly ParseError[], source: string): ConfigProblem[] {
  const byLine = new Map<string, ConfigProblem>();
  for (const { error, offset } of errors) {
    const position = positionOf(source, offset);
    const [line = ''] = position.split(':');
    const words = printParseErrorCode(error)
      .replaceAll(/(?<=[a-z])(?=[A-Z])/g, ' ')
      .toLowerCase();
    if (!byLine.has(line)) byLine.set(line, { path: '', message: `${position}: ${words}` });
  }
  return [...byLine.values()];
}
