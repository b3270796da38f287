import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { pino } from 'pino';
import { afterAll, beforeEach } from 'vitest';
import { openOperations } from '../../src/composition/command-operations.ts';
import type { StartHub } from '../../src/entrances/cli/cli-io.ts';
import { runCli } from '../../src/entrances/cli/run-cli.ts';
import type { HubDatabase } from '../../src/platform/store/database.ts';
import { openDatabase } from '../../src/platform/store/open-database.ts';

/** What is there beside the arguments. */
interface Terminal {
  /** What comes through a pipe. */
  readonly piped?: string;
  /** What a person types at a terminal. */
  readonly typed?: string;
  readonly startHub?: StartHub;
  readonly env?: Record<string, string>;
}

/** Runs one command of `hub` in a folder with a configuration, without a process of its own. */
export async function runCommand(
  directory: string,
  args: readonly string[],
  { piped, typed, startHub, env = {} }: Terminal = {},
) {
  const output = { stdout: '', stderr: '' };
  const rawModes: boolean[] = [];
  const stdin = Object.assign(new PassThrough(), {
    isTTY: typed !== undefined,
    setRawMode: (isRaw: boolean) => rawModes.push(isRaw),
  });
  stdin.end(piped ?? typed ?? '');
  const exitCode = await runCli(args, {
    stdin,
    stdout: { write: (text: string) => (output.stdout += text) },
    stderr: { write: (text: string) => (output.stderr += text) },
    env,
    directory,
    untilInterrupted: () => new AbortController().signal,
    reportFailure(description) {
      output.stderr += `${description}\n`;
    },
    openLog: () => Promise.resolve(),
    startHub: startHub ?? (() => Promise.reject(new Error('the hub must not start'))),
    startGateway: () => Promise.reject(new Error('no gateway is started here')),
    openOperations,
  });
  return { exitCode, rawModes, ...output };
}

/** Runs `hub` without a process of its own, each test in a folder with an empty configuration. */
export function useCommandLine() {
  const root = mkdtempSync(join(tmpdir(), 'hub-cli-'));
  afterAll(() => rmSync(root, { recursive: true }));

  let directory: string;
  beforeEach(() => {
    directory = mkdtempSync(join(root, 'case-'));
    writeConfig({});
  });

  function writeConfig(content: object): void {
    writeFileSync(join(directory, 'hub.config.json'), JSON.stringify(content));
  }

  const hub = (args: string, terminal?: Terminal) =>
    runCommand(directory, args.match(/"[^"]*"|\S+/g)?.map(unquote) ?? [], terminal);

  async function withDatabase<T>(work: (database: HubDatabase) => Promise<T>): Promise<T> {
    const log = pino({ level: 'silent' });
    await using database = await openDatabase('sqlite:hub.sqlite', { directory, log });
    return await work(database);
  }

  return { directory: () => directory, writeConfig, hub, withDatabase };
}

function unquote(text: string): string {
  return text.replaceAll('"', '');
}
