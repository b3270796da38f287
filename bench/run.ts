/**
 * Runs every measurement of this folder, one after the other, or those that are named:
 * `npm run bench`, `npm run bench -- gateway-forwarder`.
 */
import { spawnSync } from 'node:child_process';
import { globSync } from 'node:fs';
import { basename, join } from 'node:path';

const own = basename(import.meta.filename);
const all = globSync('*.ts', { cwd: import.meta.dirname })
  .filter((file) => file !== own)
  .map((file) => basename(file, '.ts'))
  .sort();
const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !all.includes(name));
if (unknown.length > 0) {
  console.error(`There is no measurement ${unknown.join(', ')}; there are: ${all.join(', ')}`);
  process.exit(1);
}
for (const name of wanted.length > 0 ? wanted : all) {
  console.log(`\n# ${name}`);
  const { status } = spawnSync(process.execPath, [join(import.meta.dirname, `${name}.ts`)], {
    stdio: 'inherit',
  });
  if (status !== 0) process.exitCode = 1;
}
