import type { PluginLog } from '../logging/plugin-log.ts';
import type { PluginDeclaration, PluginSurroundings } from './authenticator.ts';

/**
 * The contract of a spawner plugin, the default export of a file in `plugins/`.
 *
 * A spawner starts, watches and stops the servers of users. It keeps no list of its own: what it must
 * know again after a restart of the hub is the `SpawnerState` it returns, which the hub stores.
 */
export interface SpawnerPlugin<Options = unknown> extends PluginDeclaration<Options> {
  readonly kind: 'spawner';
  /**
   * Puts the spawner together; throws when that is impossible. Also called for trial, as for
   * authenticators: it connects to nothing, starts nothing and writes nothing; that is for `open`.
   */
  create(options: Options, host: SpawnerHost): Spawner | Promise<Spawner>;
}

export interface SpawnerHost extends PluginSurroundings {
  readonly log: PluginLog;
  /** Folder in which a spawner may keep files such as sockets and logs. */
  readonly runtimeDirectory: string;
}

/** JSON that identifies a started server to `restore`; never holds a secret. */
export type SpawnerState = Readonly<Record<string, unknown>>;

export interface SpawnRequest {
  /** Unique and stable; safe for file names. */
  readonly serverId: string;
  readonly userName: string;
  /** Empty for the default server. */
  readonly serverName: string;
  readonly command: readonly string[];
  /** The whole environment of the server, secrets included: never log it. */
  readonly environment: Readonly<Record<string, string>>;
  /** Directory the server runs in; the spawner makes it when it is missing. */
  readonly workingDirectory: string;
  readonly systemUser?: string;
  readonly memoryLimitBytes?: number;
  /** Address a TCP server should listen on. */
  readonly ip: string;
  /** Whether to listen on a Unix socket instead of a port. */
  readonly socket: boolean;
  /**
   * What was asked for at the start, an object of any JSON. Fields of `optionsForm` are checked and
   * have their declared type; everything else is as the API was given it, unchecked: up to 64 KiB,
   * lists and nested objects included. Trust nothing in it that you have not checked.
   */
  readonly userOptions: Readonly<Record<string, unknown>>;
  readonly signal: AbortSignal;
  readonly stopGraceMs: number;
  /** Told before the command starts: adds what depends on the address, such as HUB_SERVICE_URL. */
  readonly environmentForUrl: (url: string) => Readonly<Record<string, string>>;
  /** One line of output at a time. */
  readonly onOutput: (line: string, stream: 'stdout' | 'stderr') => void;
  readonly onProgress: (event: SpawnProgress) => void;
}

export interface SpawnProgress {
  /** 0 to 100. */
  readonly progress: number;
  readonly message: string;
}

/** A server that runs, or did when it was started. */
export interface SpawnedServer {
  /** Where it answers: `http://127.0.0.1:1234` or `http+unix://%2Frun%2Fx.sock`. */
  readonly url: string;
  readonly state: SpawnerState;
  /**
   * Asked when something answers at `url`, before the server gets its visitors: says in a sentence which other
   * program that is; undefined when it is the server. Left out where no other program can take its address.
   */
  readonly findStranger?: () => Promise<string | undefined>;
  /** Resolves once when the server has ended; never rejects. Undefined when only polling can tell. */
  readonly exited?: Promise<ServerExit>;
}

export interface ServerExit {
  readonly code: number | null;
  readonly signal: string | null;
}

export type PollResult =
  | { readonly running: true }
  | { readonly running: false; readonly exit?: ServerExit };

export interface Spawner {
  /** JSON-schema-like description of what a user may choose; undefined when there is nothing. */
  readonly optionsForm?: OptionsForm;
  /** Runs once, before any other call: the place to open connections. When it throws, the hub does not start. */
  open?(): void | Promise<void>;
  /**
   * Starts the server and returns as soon as it has an address. Throws an `Error` when it cannot: its
   * message is shown to the user and to administrators, so it is a sentence and holds no secret. When
   * `signal` aborts, it ends what it started and throws.
   */
  start(request: SpawnRequest): Promise<SpawnedServer>;
  /** Ends the server and everything it started. Resolves when it is gone; idempotent. */
  stop(
    state: SpawnerState,
    options: { readonly graceMs: number; readonly signal: AbortSignal },
  ): Promise<void>;
  poll(state: SpawnerState): Promise<PollResult>;
  /** Finds a server again after a restart of the hub; undefined when it is gone or is not the same. */
  restore(
    state: SpawnerState,
    handlers: Pick<SpawnRequest, 'onOutput'>,
  ): Promise<SpawnedServer | undefined>;
  /**
   * Ends what `start` left of a server whose state was never stored, because the hub was killed before
   * `start` returned. Called at the start of a hub for servers found in that condition; idempotent.
   */
  discard?(serverId: string, options: { readonly graceMs: number }): Promise<void>;
  /** CPU and memory of the server's whole process tree. */
  usage?(states: readonly SpawnerState[]): Promise<readonly (ResourceUsage | undefined)[]>;
  /** Closes what `open` opened, and leaves the servers running. Also called without `open`, after a trial. */
  [Symbol.asyncDispose]?(): Promise<void>;
}

export interface ResourceUsage {
  /** Cores in use, 1 is one core. */
  readonly cpuCores: number;
  readonly memoryBytes: number;
  readonly uptimeSeconds: number;
  readonly processes: number;
}

export interface OptionsForm {
  readonly fields: readonly OptionsField[];
}

export interface OptionsField {
  readonly name: string;
  readonly label: string;
  readonly help?: string;
  readonly type: 'text' | 'number' | 'checkbox' | 'select';
  readonly choices?: readonly { readonly value: string; readonly label: string }[];
  readonly default?: string;
  readonly required?: boolean;
  readonly min?: number;
  readonly max?: number;
}
