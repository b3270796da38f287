import type { Logger } from 'pino';
import { openLog } from '../platform/logging/open-log.ts';
import { createCommandLine } from './command-line.ts';
import { type SingleuserOptions, startSingleuser } from './singleuser.ts';

const passedSignals = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGUSR2'] as const;

async function start(options: SingleuserOptions, log: Logger): Promise<void> {
  const started = startSingleuser(options, { environment: process.env, log });
  // From now on: one that came while the app starts would end this program, and leave the app behind.
  for (const signal of passedSignals) {
    process.on(signal, () => {
      started.then((singleuser) => singleuser.signal(signal)).catch(() => undefined);
    });
  }
  const singleuser = await started;
  process.exitCode = await singleuser.exited;
  await singleuser[Symbol.asyncDispose]();
}

/** Runs `hub-singleuser` with the arguments of the process. */
export async function run(): Promise<void> {
  const { log, flushNow } = await openLog({
    stderr: process.stderr,
    level: 'info',
    form: 'json',
    time: 'iso8601',
    levelForm: 'name',
    name: 'hub-singleuser',
  });
  process.on('exit', flushNow);
  try {
    await createCommandLine((options) => start(options, log)).parseAsync();
  } catch (error) {
    // A TypeError is about options and variables; its message says which.
    if (error instanceof TypeError) log.fatal(error.message);
    else log.fatal({ err: error }, 'cannot start');
    process.exitCode = error instanceof TypeError ? 2 : 1;
  }
}
