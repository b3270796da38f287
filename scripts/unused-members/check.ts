import { join, relative } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { findUnusedMembers } from './find.ts';

const root = join(import.meta.dirname, '..', '..');

/** What only others than the program use, and who. */
const usedRemotely: Readonly<Record<string, string>> = {
  'Ledger.run': 'a timer does it; tests do it at once',
  'LimitWatch.run': 'a timer does it; tests do it at once',
  'OutputLog.tail': 'the program has each line handed to it; tests read them',
  'UseRecorder.flush': 'a timer does it; tests do it at once',
};

const found = findUnusedMembers({
  project: join(import.meta.dirname, 'tsconfig.json'),
  isProgram: (file) => !file.includes('/node_modules/') && file.startsWith(root),
  isSearched: (file) => relative(root, file).startsWith('src/'),
});
const expected = Object.keys(usedRemotely).toSorted();
if (!isDeepStrictEqual(found, expected)) {
  const unused = found.filter((member) => !expected.includes(member));
  const outdated = expected.filter((member) => !found.includes(member));
  console.error('Methods of interfaces that the program never uses:', unused.join(', ') || 'none');
  console.error('Listed as unused in check.ts, but used:', outdated.join(', ') || 'none');
  process.exitCode = 1;
}
