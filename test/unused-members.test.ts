import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { expect, test } from 'vitest';
import { findUnusedMembers } from './support/unused-members.ts';

const root = join(import.meta.dirname, '..');

/** What only others than the program use, and who. */
const usedRemotely: Readonly<Record<string, string>> = {
  'Ledger.run': 'a timer does it; tests do it at once',
  'LimitWatch.run': 'a timer does it; tests do it at once',
  'OutputLog.tail': 'the program has each line handed to it; tests read them',
  'UseRecorder.flush': 'a timer does it; tests do it at once',
};

const program = ['src', 'plugins', 'examples', 'scripts'];

test('no interface of the program has a method that the program never uses', async () => {
  await using project = await createProject({
    extends: join(root, 'tsconfig.json'),
    compilerOptions: { typeRoots: [join(root, 'node_modules', '@types')] },
    // The types of its tests would take twice as long to find.
    include: program.map((folder) => join(root, folder)),
    exclude: [join(root, '**/*.test.ts')],
  });
  const found = findUnusedMembers({
    project: project.file,
    isProgram: (file) => program.includes(placeOf(file).split('/')[0] ?? ''),
    isSearched: (file) => placeOf(file).startsWith('src/'),
  });
  // What is listed and used after all is out of date here.
  expect(found).toEqual(Object.keys(usedRemotely).toSorted());
});

test('unused methods are told from those that are called, taken out, spread or passed on', async () => {
  await using project = await createProject({
    compilerOptions: { strict: true, target: 'es2024', types: [] },
  });
  await writeFile(
    join(project.directory, 'program.ts'),
    `export interface Store {
         called(): void;
         calledIfThere?(): void;
         calledByName(): void;
         takenOut(): void;
         takenUnderAnotherName: () => void;
         givenToOthers(): void;
         passedOn(): string;
         takenWithDefault?(): void;
         forgotten(): void;
         alsoForgotten?: (() => void) | undefined;
         data: string;
       }
       interface Options { spread(): void }
       interface Other { forgotten(): void; more: string }
       interface Wanted { passedOn(): string }
       function take({ passedOn }: Wanted) { return passedOn(); }
       export function use(store: Store, other: Other, options: Options) {
         store.called();
         store.calledIfThere?.();
         store['calledByName']();
         const { takenOut, takenUnderAnotherName: name } = store;
         takenOut();
         name();
         [1].forEach(store.givenToOthers);
         other.forgotten();
         return { ...options, taken: take(store) };
       }
       export const withDefault: (store?: Partial<Store>) => void =
         ({ takenWithDefault } = {}) => takenWithDefault?.();
       export const made: Store = {
         called() {}, calledByName() {}, takenOut() {}, takenUnderAnotherName() {},
         givenToOthers() {}, passedOn: () => '', forgotten() {}, data: '',
       };`,
  );
  const everything = () => true;
  const isOurs = (file: string) => file.startsWith(project.directory);
  expect(
    findUnusedMembers({ project: project.file, isProgram: isOurs, isSearched: everything }),
  ).toEqual(['Store.alsoForgotten', 'Store.forgotten']);
});

async function createProject(config: object) {
  const directory = await mkdtemp(join(tmpdir(), 'unused-members-'));
  const file = join(directory, 'tsconfig.json');
  await writeFile(file, JSON.stringify(config));
  return {
    directory,
    file,
    [Symbol.asyncDispose]: () => rm(directory, { recursive: true, force: true }),
  };
}

function placeOf(file: string): string {
  return relative(root, file).replaceAll('\\', '/');
}
