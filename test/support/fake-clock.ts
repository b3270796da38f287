import { globSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathOf } from './requires.ts';

/** The clock of a process, which a test can set as an operator sets that of a machine. */
export interface FakeClock {
  /** What the process needs in its environment. */
  readonly env: Readonly<Record<string, string>>;
  /** Sets the clock to so many seconds before or after that of the machine. */
  set(offsetSeconds: number): Promise<void>;
}

/** The time of day is faked by libfaketime; the monotonic clock goes on, as on a real machine. */
export async function createFakeClock(directory: string): Promise<FakeClock> {
  pathOf('faketime');
  // The one for programs with several threads.
  const [library = ''] = globSync('/usr/lib/*/faketime/libfaketimeMT.so.1');
  const file = join(directory, 'clock-offset');
  const set = (seconds: number) => writeFile(file, `${seconds < 0 ? '' : '+'}${seconds}`);
  await set(0);
  return {
    env: {
      LD_PRELOAD: library,
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_NO_CACHE: '1',
      DONT_FAKE_MONOTONIC: '1',
    },
    set,
  };
}
