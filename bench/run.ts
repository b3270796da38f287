/**
 * Runs every measurement of this folder, one after the other, or those that are named: `npm run bench`,
 * `npm run bench -- gateway`. Options are handed on: `npm run bench -- gateway --rounds=9`. Needs the peers of the
 * registry: `npm ci --prefix bench`.
 */
import { spawnSync } from 'node:child_process';
import { globSync } from 'node:fs';
import { basename, join } from 'node:path';

const own = basename(import.meta.filename);
const all = globSync('*.ts', { cwd: import.meta.dirname })
  .filter((file) => file !== own)
  .map((file) => basename(file, '.ts'))
  .sort();
const given = process.argv.slice(2);
const wanted = given.filter((argument) => !argument.startsWith('-'));
const options = given.filter((argument) => argument.startsWith('-'));
const unknown = wanted.filter((name) => !all.includes(name));
if (unknown.length > 0) {
  console.error(`There is no measurement ${unknown.join(', ')}; there are: ${all.join(', ')}`);
  process.exit(1);
}
for (const name of wanted.length > 0 ? wanted : all) {
  console.log(`\n# ${name}`);
  const file = join(import.meta.dirname, `${name}.ts`);
  const { status } = spawnSync(process.execPath, [file, ...options], { stdio: 'inherit' });
  if (status !== 0) process.exitCode = 1;
}
