/** Writes the pages of `docs/reference/`, and other files, that are made from the source. Run with `npm run docs`. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { referencePages } from './reference/pages.ts';

for (const [path, text] of await referencePages()) {
  const file = join(import.meta.dirname, '..', path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}
