import { relative } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { readDurations } from './durations.ts';

/**
 * The test files of one project after those of another, since a worker ends where the next file is of
 * another project. Those that wait for the programs they start come first: the tests of parts, which are
 * short and never wait, then fill what the last of them leave idle.
 */
const projects = ['world', 'hub', 'parts'];

/**
 * Begins the files that took longest when they last ran, and those that never did, before the others of
 * their project: begun late, each of them would run alone at the end.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const durations = readDurations();
    const durationOf = ({ moduleId, project }: TestSpecification) =>
      durations[relative(project.config.root, moduleId)] ?? Number.MAX_VALUE;
    const rankOf = ({ project }: TestSpecification) => projects.indexOf(project.name);
    return files.toSorted(
      (one, other) => rankOf(one) - rankOf(other) || durationOf(other) - durationOf(one),
    );
  }
}
