import { join, relative } from 'node:path';
import { expect } from 'vitest';
import { Text } from '../../src/platform/texts/text.ts';
import './end-of-worker.ts';
import { beginTestFile } from './requires.ts';

beginTestFile(relative(join(import.meta.dirname, '..', '..'), expect.getState().testPath ?? ''));

// A text is expected as it reads in English.
expect.addEqualityTesters([
  (one: unknown, other: unknown) => {
    const isText = one instanceof Text || other instanceof Text;
    return isText ? String(one) === String(other) : undefined;
  },
]);
