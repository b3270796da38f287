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
  /** Where a setting stands, or what should hold it. */
  positionOf(path: string): ConfigProblem['position'];
}

/**
 * Reads JSON with comments and trailing commas. Beside syntax errors, with their line and column, it
 * reports keys that stand twice: JSON.parse would silently keep only the last of them.
 */
export function readJsonc(text: string): JsoncDocument {
  const source = text.startsWith('\uFEFF') ? text.slice(1) : text;
  const errors: ParseError[] = [];
  const tree = parseTree(source, errors, { allowTrailingComma: true });

  const offsets = new Map<string, number>();
  function positionOf(path: string): ConfigProblem['position'] {
    const offset = offsets.get(path);
    if (offset !== undefined) return placeOf(source, offset);
    const holder = path.replace(/(?:\.[^.[]*|\[[^\]]*\]|^[^.[]*)$/, '');
    return holder === path ? undefined : positionOf(holder);
  }

  if (source.trim() === '')
    return { value: undefined, problems: [{ path: '', message: 'is empty' }], positionOf };
  if (errors.length > 0 || tree === undefined) {
    return { value: undefined, problems: describeSyntaxErrors(errors, source), positionOf };
  }

  const problems: ConfigProblem[] = [];
  collectKeyProblems(tree, [], source, { problems, offsets });
  return { value: getNodeValue(tree), problems, positionOf };
}

function collectKeyProblems(
  node: Node,
  path: readonly (string | number)[],
  source: string,
  found: { readonly problems: ConfigProblem[]; readonly offsets: Map<string, number> },
): void {
  const { problems, offsets } = found;
  if (node.type === 'array') {
    for (const [index, child] of (node.children ?? []).entries()) {
      offsets.set(formatPath([...path, index]), child.offset);
      collectKeyProblems(child, [...path, index], source, found);
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
      const { line, column } = placeOf(source, firstOffset);
      const message = `stands twice: at line ${line}:${column} too`;
      problems.push({ path: formatPath(keyPath), message });
    }
    if (key === '__proto__') {
      problems.push({ path: formatPath(keyPath), message: 'is not allowed as a key' });
    }
    firstOffsets.set(key, keyNode.offset);
    offsets.set(formatPath(keyPath), keyNode.offset);
    if (valueNode !== undefined) collectKeyProblems(valueNode, keyPath, source, found);
  }
}

function placeOf(source: string, offset: number): NonNullable<ConfigProblem['position']> {
  const before = source.slice(0, offset);
  return { line: before.split('\n').length, column: offset - before.lastIndexOf('\n') };
}

/** One problem a line: what follows a syntax error on its line is mostly its echo. */
function describeSyntaxErrors(errors: readonly ParseError[], source: string): ConfigProblem[] {
  const byLine = new Map<number, ConfigProblem>();
  for (const { error, offset } of errors) {
    const position = placeOf(source, offset);
    const message = printParseErrorCode(error)
      .replaceAll(/(?<=[a-z])(?=[A-Z])/g, ' ')
      .toLowerCase();
    if (!byLine.has(position.line)) byLine.set(position.line, { path: '', message, position });
  }
  return [...byLine.values()];
}
