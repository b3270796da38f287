// Preloaded into a hub: on SIGUSR2 it writes what it holds into the file HOLDING_FILE. To be run with
// --expose-gc.
import { readdirSync, readlinkSync, renameSync, writeFileSync } from 'node:fs';
import process from 'node:process';
import { isMainThread } from 'node:worker_threads';
import { measureHolding } from '../soak/holding.ts';

const file = process.env['HOLDING_FILE'];

if (isMainThread && file !== undefined) {
  process.on('SIGUSR2', () => {
    void measureHolding().then((holding) => {
      writeFileSync(`${file}.part`, JSON.stringify({ ...holding, files: openFiles() }));
      renameSync(`${file}.part`, file);
    });
  });
}

/** Without those that pidusage keeps of processes for a minute after they have ended. */
function openFiles(): string[] {
  return readdirSync('/proc/self/fd').flatMap((descriptor) => {
    try {
      const target = readlinkSync(`/proc/self/fd/${descriptor}`);
      return /^\/proc\/\d+\/stat$/.test(target) ? [] : [target];
    } catch {
      // The one that the folder itself was read with.
      return [];
    }
  });
}
