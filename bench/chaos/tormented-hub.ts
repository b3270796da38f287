import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, openSync, readFileSync, rmSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import process from 'node:process';
import { createFakeClock, type FakeClock } from '../../test/support/fake-clock.ts';
import type { HubFolder } from '../../test/support/hub-process.ts';
import { until } from '../../test/support/test-hub.ts';
import type { Holding } from '../soak/holding.ts';

const root = join(import.meta.dirname, '..', '..');
const program = join(root, 'src', 'main.ts');
const preload = join(import.meta.dirname, 'report-holding.ts');
/** Of a small disk, where one can be mounted. */
const logDiskMiB = 64;

/** What a hub holds, and what its open files lead to, `/proc/<pid>/stat` left out. */
export interface DetailedHolding extends Holding {
  readonly files: readonly string[];
}

/** A hub as an operator runs it, in the hands of what may happen to a machine. */
export interface TormentedHub extends AsyncDisposable {
  readonly folder: HubFolder;
  readonly pid: number;
  /** The clock of the hub alone. */
  readonly clock: FakeClock;
  /** Where its log is, if that has a disk of its own. */
  readonly logDisk: string | undefined;
  readonly logFile: string;
  /** Ends that nobody asked for: what is known of them. */
  readonly unexpectedEnds: readonly string[];
  /** Starts it and waits for nothing. */
  begin(): void;
  /** Starts it and waits until it is ready. */
  start(): Promise<void>;
  untilReady(): Promise<void>;
  /** Sends a signal after which it ends, and waits for that. Returns the exit code. */
  end(signal: NodeJS.Signals): Promise<number | null>;
  /** Starts it a second time; returns how that ends. */
  startAgain(): Promise<{ readonly code: number | null; readonly text: string }>;
  measure(): Promise<DetailedHolding>;
}

export async function createTormentedHub(folder: HubFolder): Promise<TormentedHub> {
  const { directory, configFile } = folder;
  const clock = await createFakeClock(directory);
  const logFolder = join(directory, 'hub-log');
  await mkdir(logFolder);
  const hasDisk = mountDisk(logFolder);
  const logFile = join(logFolder, 'hub.log');
  const holdingFile = join(directory, 'holding.json');
  const unexpectedEnds: string[] = [];
  const args = ['--expose-gc', '--import', preload, program, 'start', '--config', configFile];
  let child: ChildProcess | undefined;
  let output = '';
  let isToEnd = false;

  function begin(): void {
    const log = openSync(logFile, 'a');
    const env = { ...process.env, ...clock.env, HOLDING_FILE: holdingFile };
    const started = spawn(process.execPath, args, {
      cwd: directory,
      env,
      stdio: ['ignore', 'pipe', log],
    });
    closeSync(log);
    output = '';
    isToEnd = false;
    child = started;
    started.stdout?.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
    started.once('exit', (code, signal) => {
      if (isToEnd) return;
      const last = readFileSync(logFile, 'utf8').trimEnd().split('\n').slice(-3).join('\n');
      unexpectedEnds.push(`exit code ${code}, signal ${signal}; last in its log:\n${last}`);
    });
  }

  async function untilReady(): Promise<void> {
    const started = child;
    const hasEnded = () => started?.exitCode !== null || started.signalCode !== null;
    await until(() => hasEnded() || output.includes('The hub is ready at'), 'hub ready');
    if (hasEnded()) throw new Error(`the hub ended while it started: ${unexpectedEnds.at(-1)}`);
  }

  async function end(signal: NodeJS.Signals): Promise<number | null> {
    const ending = child;
    if (ending === undefined || ending.exitCode !== null || ending.signalCode !== null) return null;
    isToEnd = true;
    const exited = once(ending, 'exit');
    ending.kill(signal);
    const [code] = (await exited) as [number | null];
    return code;
  }

  return {
    folder,
    clock,
    logFile,
    logDisk: hasDisk ? logFolder : undefined,
    unexpectedEnds,
    get pid() {
      return child?.pid ?? 0;
    },
    begin,
    untilReady,
    end,
    async start() {
      begin();
      await untilReady();
    },
    async startAgain() {
      const { code, stdout, stderr } = await folder.run(['start']);
      return { code, text: stdout + stderr };
    },
    async measure() {
      rmSync(holdingFile, { force: true });
      child?.kill('SIGUSR2');
      await until(() => existsSync(holdingFile), 'the hub has told what it holds');
      return JSON.parse(readFileSync(holdingFile, 'utf8')) as DetailedHolding;
    },
    async [Symbol.asyncDispose]() {
      await end('SIGKILL');
      if (hasDisk) spawnSync('/bin/umount', ['--lazy', logFolder]);
    },
  };
}

function mountDisk(folder: string): boolean {
  if (process.getuid?.() !== 0) return false;
  const options = ['-t', 'tmpfs', '-o', `size=${logDiskMiB}m`, 'tmpfs', folder];
  return spawnSync('/bin/mount', options).status === 0;
}
