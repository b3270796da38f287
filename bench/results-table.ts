import { mkdir, writeFile } from 'node:fs/promises';
import { availableParallelism, cpus } from 'node:os';
import { join } from 'node:path';

/** Writes `bench/results/<name>.md` and prints it: a table of what was measured beside what it must be. */
export async function writeResultsTable(options: {
  readonly name: string;
  /** What follows `npm run bench --`; the name unless told otherwise. */
  readonly command?: string;
  readonly heading: string;
  /** SQLite unless told otherwise. */
  readonly database?: string;
  /** What else a reader has to know of the setting. */
  readonly setting: string;
  readonly rows: readonly string[][];
  /** Of a part of the measurements: it is printed alone, and does not take the place of the whole. */
  readonly isPartial?: boolean;
}): Promise<void> {
  const { name, command = name, heading, database = 'SQLite', setting, rows } = options;
  const text = [
    `# ${heading}`,
    '',
    `Measured by \`npm run bench -- ${command}\` on ${availableParallelism()} cores of ${cpus()[0]?.model ?? 'unknown'}, ` +
      `Node.js ${process.version}, ${database}. ${setting}`,
    '',
    '| what | measured | must be | is |',
    '| --- | --- | --- | --- |',
    ...rows.map((row) => `| ${row.join(' | ')} |`),
    '',
  ].join('\n');
  process.stdout.write(text);
  if (options.isPartial === true) return;
  const directory = join(import.meta.dirname, 'results');
  await mkdir(directory, { recursive: true });
  await writeFile(join(directory, `${name}.md`), text);
}
