import { join, relative } from 'node:path';
import { expect } from 'vitest';
import { beginTestFile } from './requires.ts';

beginTestFile(relative(join(import.meta.dirname, '..', '..'), expect.getState().testPath ?? ''));
