import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { z } from 'zod';
import type { Config } from '../config/config.ts';
import { HubError } from '../errors.ts';
import {
  identifyProcess,
  isSameProcess,
  type ProcessIdentity,
} from '../processes/process-identity.ts';

/** Tells other commands which process runs the hub of a configuration. */
export interface PidFile extends AsyncDisposable {
  /** Names this process. Disposing takes that back, unless another hub has taken over. */
  write(): Promise<void>;
  /** Signals the running hub. Throws `not_found` when there is none: a pid may be another's by now. */
  signal(signal: NodeJS.Signals): Promise<ProcessIdentity>;
}

const identitySchema = z.object({ pid: z.int().positive(), startTime: z.string() });

/** The pid file of a configuration file: in the folder `.hub` beside it. */
export function createPidFile(config: Pick<Config, 'directory' | 'file'>): PidFile {
  const name = basename(config.file ?? 'hub');
  const file = join(config.directory, '.hub', `${name}.pid`);

  async function read(): Promise<ProcessIdentity | undefined> {
    try {
      return identitySchema.parse(JSON.parse(await readFile(file, 'utf8')));
    } catch {
      // Not there, or not what a hub writes: no process to signal.
      return undefined;
    }
  }

  return {
    async write() {
      const own = identifyProcess(process.pid);
      if (own === undefined) return;
      await mkdir(dirname(file), { recursive: true });
      const temporary = `${file}.${process.pid}`;
      await writeFile(temporary, JSON.stringify(own), { mode: 0o600 });
      await rename(temporary, file);
    },

    async signal(signal) {
      const running = await read();
      if (running === undefined || !isSameProcess(running)) {
        throw new HubError('not_found', 'No hub runs with this configuration file.', {
          hint: 'Start one with: hub start',
        });
      }
      process.kill(running.pid, signal);
      return running;
    },

    async [Symbol.asyncDispose]() {
      const written = await read();
      if (written?.pid === process.pid) await rm(file, { force: true });
    },
  };
}
