import { expect, test } from 'vitest';
import {
  parameterValue,
  rejectRepeatedParameters,
  requireParameter,
} from './request-parameters.ts';

const parameters = new URLSearchParams('a=1&empty=&twice=1&twice=2&other=1&other=1');

test('treats a parameter without a value as left out', () => {
  expect(parameterValue(parameters, 'a')).toBe('1');
  expect(parameterValue(parameters, 'empty')).toBeUndefined();
  expect(() => requireParameter(parameters, 'empty')).toThrow('The parameter empty is missing.');
});

test('refuses a known parameter that comes twice and ignores an unknown one', () => {
  expect(() => rejectRepeatedParameters(parameters, ['a', 'twice'])).toThrow('twice');
  expect(() => rejectRepeatedParameters(parameters, ['a', 'empty'])).not.toThrow();
});
