import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { findUnusedMembers } from './find.ts';

test('unused methods are distinguished from those that are called, taken out, spread or passed on', async () => {
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
