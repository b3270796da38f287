import type { CommandCall } from '../../operations/perform-command.ts';
import type { Secret } from '../../platform/config/secret.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import type { CheckedConfig } from './checked-config.ts';

/** Where a command reads from and writes to. */
export interface CliIo {
  readonly stdin: CliInput;
  readonly stdout: CliOutput;
  readonly stderr: CliOutput;
  readonly env: Readonly<Record<string, string | undefined>>;
  /**
   * From the call on, Ctrl-C does not end the process but aborts this, as does SIGTERM, and as it does when the
   * reader of the output has gone.
   */
  readonly untilInterrupted: () => AbortSignal;
  /** Says why a command ends with a failure. */
  readonly reportFailure: (description: string) => void;
  /** Opens the log of a hub that is to start; `reportFailure` writes to it from then on where all is JSON. */
  readonly openLog: (checked: CheckedConfig) => Promise<void>;
  readonly startHub: StartHub;
  readonly startGateway: StartGateway;
  readonly openOperations: OpenOperations;
  /** Waits for so many milliseconds; by the clock unless given. */
  readonly pause?: (ms: number) => Promise<unknown>;
  /** Folder against which `--config` is resolved; the current one by default. */
  readonly directory?: string;
}

export interface CliOutput {
  write(text: string): unknown;
}

export type CliInput = NodeJS.ReadableStream & {
  readonly isTTY?: boolean;
  setRawMode?(isRaw: boolean): unknown;
};

/** Runs the hub until it has stopped. */
export type StartHub = (start: {
  readonly checked: CheckedConfig;
  /** Reads and checks the same file again; throws a ConfigError and changes nothing when it is wrong. */
  readonly reload: () => Promise<CheckedConfig>;
}) => Promise<void>;

/** Opens what performs operations in this process: for while no hub runs that could. */
export type OpenOperations = (
  checked: Pick<CheckedConfig, 'config' | 'plugins'>,
  database: HubDatabase,
) => Promise<CommandEntrance>;

/** Has what commands ask for performed. */
export interface CommandEntrance extends AsyncDisposable {
  call(call: CommandCall): Promise<unknown>;
}

/** Runs a gateway until it has stopped. */
export type StartGateway = (gateway: {
  readonly hubUrl: URL;
  readonly token: Secret;
  readonly name: string;
  readonly bindUrl: string | undefined;
  readonly redirectBindUrl: string | undefined;
  readonly isLocal: boolean;
  readonly logLevel: string;
  readonly logFormat: string;
}) => Promise<void>;
