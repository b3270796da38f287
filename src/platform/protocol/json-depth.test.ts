import { expect, test } from 'vitest';
import { deepestJson, isNestedTooDeep } from './json-depth.ts';

const nested = (levels: number) =>
  JSON.parse(`${'{"a":['.repeat(levels / 2)}${']}'.repeat(levels / 2)}`) as unknown;

test('as many levels as may be are taken, and not one more', () => {
  expect(isNestedTooDeep(nested(deepestJson))).toBe(false);
  expect(isNestedTooDeep([nested(deepestJson)])).toBe(true);
  expect(isNestedTooDeep([1, 'two', null, {}, [true]])).toBe(false);
});

test('a value of any depth is refused, not run into', () => {
  expect(isNestedTooDeep(nested(400_000))).toBe(true);
});
