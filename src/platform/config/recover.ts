import type { z } from 'zod';
import { formatPath } from './problem-path.ts';

/** What a schema makes of a value from which everything it refuses was taken out. */
export interface Recovered<Output> {
  readonly output: Output;
  /** Translates a path in `output` back to the value as it was written. */
  originalPath(path: string): string;
}

/**
 * Removes what a schema refuses until the rest passes, so that a configuration with a slip in one
 * place is still checked for contradictions in all others and every problem shows at once.
 * Undefined when nothing useful remains.
 */
export function recover<Schema extends z.ZodType>(
  schema: Schema,
  input: unknown,
): Recovered<z.output<Schema>> | undefined {
  const remains = structuredClone(input);
  const originalIndices = new Map<unknown[], number[]>();
  for (let round = 0; round < 20; round++) {
    const result = schema.safeParse(remains);
    if (result.success) {
      const originalPath = (path: string): string => toOriginal(path, remains, originalIndices);
      return { output: result.data, originalPath };
    }
    const removals = result.error.issues.flatMap(offendingPaths);
    if (!removals.map((path) => remove(remains, path)).some(Boolean)) return undefined;
    compact(remains, originalIndices);
  }
  return undefined;
}

/** Stands where an element of a list was taken out, until the list is compacted. */
const removed = Symbol('removed');

function offendingPaths(issue: z.core.$ZodIssue): PropertyKey[][] {
  if (issue.code === 'unrecognized_keys') return issue.keys.map((key) => [...issue.path, key]);
  const alternatives = issue.code === 'invalid_union' ? (issue.errors as z.core.$ZodIssue[][]) : [];
  const fitting = alternatives.filter((issues) => !issues.some(({ path }) => path.length === 0));
  const [only] = fitting;
  if (fitting.length !== 1 || only === undefined) return [issue.path];
  return only.flatMap(offendingPaths).map((path) => [...issue.path, ...path]);
}

/** Removes what stands at the path; when nothing does (something is missing), what holds it. */
function remove(root: unknown, path: readonly PropertyKey[]): boolean {
  const last = path.at(-1);
  if (last === undefined) return false;
  const holder = path.slice(0, -1).reduce<unknown>((at, step) => childOf(at, step), root);
  if (childOf(holder, last) === undefined) return remove(root, path.slice(0, -1));
  if (Array.isArray(holder)) holder[Number(last)] = removed;
  else Reflect.deleteProperty(holder as object, last);
  return true;
}

function childOf(holder: unknown, step: PropertyKey): unknown {
  if (typeof holder !== 'object' || holder === null || !Object.hasOwn(holder, step))
    return undefined;
  return Reflect.get(holder, step);
}

function compact(value: unknown, originalIndices: Map<unknown[], number[]>): void {
  if (typeof value !== 'object' || value === null) return;
  if (Array.isArray(value)) {
    const before = originalIndices.get(value) ?? value.map((_, index) => index);
    originalIndices.set(
      value,
      before.filter((_, index) => value[index] !== removed),
    );
    value.splice(0, value.length, ...value.filter((element) => element !== removed));
  }
  for (const child of Object.values(value)) compact(child, originalIndices);
}

function toOriginal(
  path: string,
  remains: unknown,
  originalIndices: ReadonlyMap<unknown[], number[]>,
): string {
  // Quoted steps hold names, not places in a list that could have moved.
  if (path.includes('["')) return path;
  let holder = remains;
  const steps = path.match(/[^.[\]]+/g) ?? [];
  const original = steps.map((step) => {
    const isIndex = Array.isArray(holder) && /^\d+$/.test(step);
    const originalStep = isIndex
      ? (originalIndices.get(holder as unknown[])?.[Number(step)] ?? Number(step))
      : step;
    holder = childOf(holder, step);
    return originalStep;
  });
  return formatPath(original);
}
