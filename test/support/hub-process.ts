import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { freePort } from './free-port.ts';
import { killTrees } from './leftovers.ts';
import { memoryFolder } from './memory-folder.ts';
import { programFile } from './program-file.ts';
import { pathOf } from './requires.ts';
import { runCommand } from './run-command.ts';
import { endProcessesIn, until } from './test-hub.ts';

type Section = Readonly<Record<string, unknown>>;

/** A folder with a configuration file, in which the program is run as an operator runs it. */
export interface HubFolder extends AsyncDisposable {
  readonly directory: string;
  readonly configFile: string;
  /** Public base URL, ends in a slash. */
  readonly url: string;
  readonly apiUrl: string;
  /** Writes the configuration file; addresses and key are filled in. */
  configure(config: ProcessConfig): Promise<void>;
  /** Starts the program, with another configuration file if told, and waits until it is ready. */
  start(file?: string, env?: Readonly<Record<string, string>>): Promise<HubProcess>;
  /** Runs the program to its end, with the configuration file unless the arguments name one. */
  run(
    args: readonly string[],
    input?: string,
    environment?: Readonly<Record<string, string>>,
  ): Promise<Run>;
  /** The same in this process, in a tenth of the time. */
  command(
    args: readonly string[],
    input?: string,
    environment?: Readonly<Record<string, string>>,
  ): Promise<Run>;
}

export interface ProcessConfig {
  readonly Hub?: Section;
  readonly [section: string]: unknown;
}

/** A run of the program that has ended. */
export interface Run {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A hub that runs as a process of its own. */
export interface HubProcess extends AsyncDisposable {
  readonly pid: number;
  stdout(): string;
  stderr(): string;
  /** Lines of the log with this message. */
  logged(message: RegExp): Record<string, unknown>[];
  signal(signal: NodeJS.Signals): void;
  /** The exit code, null after a signal nobody caught. */
  readonly exited: Promise<number | null>;
  /** Ends the hub itself; what it has started may go on, and keep its output open. */
  end(): Promise<void>;
}

const program = programFile('main');
const children = new Set<ChildProcess>();
// A program that is ended in the middle, such as a measurement, leaves no hub and none of its servers.
process.once('exit', () =>
  killTrees([...children].flatMap(({ pid }) => (pid === undefined ? [] : [pid]))),
);

/** Makes a folder for a hub on free ports with a service token `admin-service-token`. */
export async function createHubFolder(config: ProcessConfig = {}): Promise<HubFolder> {
  const directory = await mkdtemp(join(memoryFolder(), 'hub-process-'));
  const configFile = join(directory, 'hub.config.json');
  const [publicPort, internalPort] = [await freePort(), await freePort()];
  const running = new Set<HubProcess>();
  const withConfig = (args: readonly string[]) =>
    args.includes('--config') ? args : [...args, '--config', configFile];

  const folder: HubFolder = {
    directory,
    configFile,
    url: `http://127.0.0.1:${publicPort}/`,
    apiUrl: `http://127.0.0.1:${internalPort}/hub/api`,

    async configure(changed) {
      const complete = {
        DummyAuthenticator: { password: 'test' },
        Authenticator: { allow_all: true },
        ...changed,
        Hub: {
          bind_url: `http://127.0.0.1:${publicPort}/`,
          hub_bind_url: `http://127.0.0.1:${internalPort}`,
          authenticator_class: 'dummy',
          instance_name: basename(directory),
          ...changed.Hub,
          services: [
            { name: 'admin-service', admin: true, api_token: 'admin-service-token' },
            ...((changed.Hub?.['services'] as unknown[] | undefined) ?? []),
          ],
        },
      };
      await writeFile(configFile, JSON.stringify(complete));
    },

    async start(file = configFile, env = {}) {
      const hub = await startHubProcess(['start', '--config', file], { cwd: directory, env });
      running.add(hub);
      return hub;
    },

    async run(args, input = '', environment = {}) {
      const child = spawn(process.execPath, [program, ...withConfig(args)], {
        cwd: directory,
        env: { ...process.env, ...environment },
        stdio: ['pipe', 'pipe', 'pipe'],
      });
      child.stdin.on('error', () => undefined);
      child.stdin.end(input);
      const [stdout, stderr, [code]] = await Promise.all([
        text(child.stdout),
        text(child.stderr),
        once(child, 'exit') as Promise<[number | null]>,
      ]);
      return { code, stdout, stderr };
    },

    async command(args, piped = '', environment = {}) {
      const {
        exitCode: code,
        stdout,
        stderr,
      } = await runCommand(directory, withConfig(args), {
        piped,
        env: { ...process.env, ...environment },
      });
      return { code, stdout, stderr };
    },

    async [Symbol.asyncDispose]() {
      for (const hub of running) await hub.end();
      // Its gateways, which would keep its output open for as long as they linger.
      await endProcessesIn(directory);
      for (const hub of running) await hub.exited;
      await rm(directory, { recursive: true, force: true, maxRetries: 3 });
    },
  };
  await folder.configure(config);
  return folder;
}

export interface HubSurroundings {
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
  /** File of the program; the one of the project by default. */
  readonly program?: string;
  /** Runs the program, such as `unshare`; it must become it. */
  readonly wrapper?: readonly string[];
  /** How many files the process may have open. */
  readonly openFiles?: number;
}

/** Starts the program, and waits for nothing. */
export function spawnHubProcess(
  args: readonly string[],
  { cwd, env = {}, program: file = program, wrapper = [], openFiles }: HubSurroundings,
): HubProcess {
  // It becomes the program, so that signals reach that.
  const limit =
    openFiles === undefined ? [] : [pathOf('prlimit'), `--nofile=${openFiles}:${openFiles}`];
  const [command = '', ...rest] = [...limit, ...wrapper, process.execPath, file, ...args];
  const child = spawn(command, rest, {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  return observe(child);
}

/** Starts the program and waits until it says that it is ready; fails when it ends before. */
export async function startHubProcess(
  args: readonly string[],
  surroundings: HubSurroundings,
): Promise<HubProcess> {
  const hub = spawnHubProcess(args, surroundings);
  let code: number | null | undefined;
  void hub.exited.then((exitCode) => {
    code = exitCode;
  });
  try {
    await until(
      () => code !== undefined || hub.stdout().includes('The hub is ready at'),
      'hub ready',
    );
  } catch (error) {
    await hub[Symbol.asyncDispose]();
    throw error;
  }
  if (code !== undefined) throw new Error(`the hub ended with ${code}: ${hub.stderr()}`);
  return hub;
}

function observe(child: ChildProcess): HubProcess {
  let stdout = '';
  let stderr = '';
  child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
    stdout += chunk;
  });
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    stderr += chunk;
  });
  // Not "exit": by "close" everything it wrote has been read.
  const exited = once(child, 'close').then(([code]) => code as number | null);
  children.add(child);
  child.once('exit', () => children.delete(child));
  async function end(): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    // A hub that hangs must not outlive its test.
    const killing = setTimeout(() => child.kill('SIGKILL'), 20_000);
    await ended;
    clearTimeout(killing);
  }
  return {
    pid: child.pid ?? 0,
    stdout: () => stdout,
    stderr: () => stderr,
    logged: (message) =>
      stderr
        .split('\n')
        .flatMap((line) => (line.startsWith('{') ? [JSON.parse(line)] : []))
        .filter((line: { msg?: string }) => message.test(line.msg ?? '')),
    signal: (signal) => void child.kill(signal),
    exited,
    end,
    async [Symbol.asyncDispose]() {
      await end();
      await exited;
    },
  };
}
