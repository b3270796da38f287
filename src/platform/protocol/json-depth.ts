/**
 * How many objects and lists of JSON may stand in one another, wherever it comes from outside. `JSON.parse` takes any
 * number, but what reads the value later fails at a few thousand: `JSON.stringify`, comparing, a schema.
 */
export const deepestJson = 100;

/** Whether more objects and lists stand in one another in a value of JSON than may. */
export function isNestedTooDeep(value: unknown): boolean {
  let level = containersIn([value]);
  for (let depth = 0; depth < deepestJson && level.length > 0; depth += 1) {
    level = level.flatMap((container) => containersIn(Object.values(container)));
  }
  return level.length > 0;
}

function containersIn(values: readonly unknown[]): object[] {
  return values.filter((value) => typeof value === 'object' && value !== null);
}
