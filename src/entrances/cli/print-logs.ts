import { resolve } from 'node:path';
import { pino } from 'pino';
import type { Config } from '../../platform/config/config.ts';
import { hubCommand } from '../../platform/files/program-folder.ts';
import { openDatabase } from '../../platform/store/open-database.ts';
import { followOutput, type OutputSource } from '../../spawning/processes/output-feed.ts';
import type { CliIo } from './cli-io.ts';
import { findProgram, type Program, type ProgramKind } from './find-program.ts';
import { createRunningOutput, type RunningOutput } from './running-output.ts';

interface WhatToPrint {
  readonly io: CliIo;
  readonly lines: number | undefined;
  /** Lines that are older are left out. */
  readonly sinceSeconds: number | undefined;
}

/**
 * Prints what a program writes on standard output; what the command has to say itself goes to standard error.
 * Throws HubError where there is no such program, and `unavailable` where it does not run, unless it is followed.
 */
export async function printLogs(
  config: Config,
  options: WhatToPrint & {
    readonly name: string;
    readonly kind: ProgramKind | undefined;
    readonly follows: boolean;
  },
): Promise<void> {
  const { io, lines, sinceSeconds, follows } = options;
  await using database = await openDatabase(config.Hub.database_url, {
    directory: resolve(config.directory),
    log: pino({ level: 'silent' }),
  });
  const program = await findProgram(database, config, options);
  const output = createRunningOutput(database, config);
  if (follows) {
    await follow(program, output, options);
  } else {
    const { part } = await output
      .read(program, { max: lines, withinSeconds: sinceSeconds })
      .catch((error: unknown) => {
        tellFailure(program, options);
        throw error;
      });
    for (const line of part.lines) io.stdout.write(`${line}\n`);
  }
}

async function follow(
  program: Program,
  output: RunningOutput,
  { io, lines, sinceSeconds }: WhatToPrint,
): Promise<void> {
  const signal = io.untilInterrupted();
  /** Run of the hub that answered last, and that answered the time before. */
  let [hub, formerHub]: (string | undefined)[] = [];
  const source: OutputSource = {
    async read(after, max) {
      const { part, instance } = await output.read(program, {
        after,
        max,
        // It says where to begin; what comes after a restart is new.
        withinSeconds: hub === undefined ? sinceSeconds : undefined,
      });
      [formerHub, hub] = [hub, instance.id];
      return part;
    },
    onMore: () => () => undefined,
  };
  const say = (text: string) => io.stderr.write(`${hubCommand('logs')}: ${text}\n`);
  let isWaiting = false;
  for await (const event of followOutput(source, { signal, lines })) {
    if (event.problem !== undefined) {
      // One line for one outage: it goes through several states while a hub restarts.
      if (!isWaiting) say(`${event.problem} Waiting for it …`);
      isWaiting = true;
      continue;
    }
    isWaiting = false;
    if (event.restarted) {
      say(
        formerHub === hub
          ? 'It has been started again; from its beginning:'
          : 'The hub has been restarted; its last lines:',
      );
    }
    if (event.skipped !== undefined)
      say(event.skipped === 1 ? '1 line was left out.' : `${event.skipped} lines were left out.`);
    for (const line of event.lines) io.stdout.write(`${line}\n`);
  }
}

/** Prints what the hub that ran a server no longer keeps but the database does: the end of a run that failed. */
function tellFailure(program: Program, { io, lines, sinceSeconds }: WhatToPrint): void {
  const failure = program.kind === 'server' ? program.server.failure : undefined;
  if (failure === undefined) return;
  const ageSeconds = (Date.now() - failure.at.getTime()) / 1000;
  if (sinceSeconds !== undefined && ageSeconds > sinceSeconds) return;
  const at = `${failure.at.toISOString().slice(0, 19).replace('T', ' ')} UTC`;
  io.stderr.write(
    `${hubCommand('logs')}: It failed at ${at}: ${failure.message} The end of its output:\n`,
  );
  const last = lines === 0 ? [] : failure.output.slice(-(lines ?? failure.output.length));
  for (const line of last) io.stdout.write(`${line}\n`);
}
