// Loaded before a hub by `--import`: each SIGUSR2 has the names of the source files in which a function was called since
// the last one written to the file in HUB_CALLED_FILES, a path a line. What runs as a module is loaded is not counted.
import { renameSync, writeFileSync } from 'node:fs';
import { type Profiler, Session } from 'node:inspector';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

const sources = join(import.meta.dirname, '..', '..', 'src');
const file = process.env['HUB_CALLED_FILES'] ?? '';
const session = new Session();
session.connect();
session.post('Profiler.enable');
session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });

process.on('SIGUSR2', () => {
  session.post('Profiler.takePreciseCoverage', (error, { result }) => {
    if (error !== null) throw error;
    const called = result.filter(({ functions }) => functions.some(isCalled)).map(pathOf);
    writeFileSync(`${file}.new`, called.filter((path) => path.startsWith(sources)).join('\n'));
    renameSync(`${file}.new`, file);
  });
});

function isCalled({ functionName, ranges: [range] }: Profiler.FunctionCoverage): boolean {
  const isModule = functionName === '' && range?.startOffset === 0;
  return !isModule && (range?.count ?? 0) > 0;
}

function pathOf({ url }: Profiler.ScriptCoverage): string {
  return url.startsWith('file:') ? fileURLToPath(url) : url;
}
