import type { z } from 'zod';
import type { PluginLog } from '../../platform/logging/plugin-log.ts';
import type { LocalizedText, Phrase, Text } from '../../platform/texts/text.ts';
import type { CallOptions, PluginDeclaration, PluginSurroundings } from './authenticator.ts';
import type { Finding } from './finding.ts';
import type {
  ResumeRequest,
  ServerIdentity,
  SpawnerState,
  SpawnRequest,
  StartCallbacks,
} from './spawn-request.ts';

export type { SpawnerState } from './spawn-request.ts';

/**
 * The contract of a spawner plugin, the default export of a file in `plugins/`.
 *
 * A spawner starts, watches and stops the servers of users. It keeps no list of its own: what it must
 * know again after a restart of the hub is the `SpawnerState` it returns, which the hub stores.
 */
export interface SpawnerPlugin<Options = unknown, ProfileOptions = unknown>
  extends PluginDeclaration<Options> {
  readonly kind: 'spawner';
  /**
   * Strict schema of `options` in `Spawner.profiles`: what a profile can say to this spawner alone, such as an
   * image or a partition. Takes `{}` too, for profiles that say nothing and where there are none. A profile
   * with options is refused where this is left out.
   */
  readonly profileOptionsSchema?: z.ZodType<ProfileOptions>;
  /**
   * Puts the spawner together; throws when that is impossible. Also called for trial, as for
   * authenticators: it connects to nothing, starts nothing and writes nothing; that is for `open`.
   */
  create(
    options: Options,
    host: SpawnerHost,
  ): Spawner<ProfileOptions> | Promise<Spawner<ProfileOptions>>;
}

export interface SpawnerHost extends PluginSurroundings {
  readonly log: PluginLog;
  /** Folder in which a spawner may keep files such as sockets and logs. */
  readonly runtimeDirectory: string;
  /** UUID of this hub, made once and kept, the same for all that share its database: for names and labels. */
  readonly hubId: string;
  /**
   * Which of these servers start, run or stop at this moment, wherever; the others may have nothing on the
   * engine. Ask after you have seen what there is, or a server that starts in between counts as left over.
   */
  activeServers(serverIds: readonly string[]): Promise<ReadonlySet<string>>;
}

/** A server that runs, or did when it was started. */
export interface SpawnedServer {
  /** Where it answers: `http://127.0.0.1:1234` or `http+unix://%2Frun%2Fx.sock`. */
  readonly url: string;
  readonly state: SpawnerState;
  /**
   * Asked when something answers at `url`, before the server gets its visitors (`isAnswered`), and now and then
   * afterwards: says in a sentence which other program has the address; undefined when it is the server. Left out
   * where no other program can take its address.
   */
  readonly findForeignProcess?: (seen?: {
    readonly isAnswered: boolean;
  }) => Promise<Phrase | undefined>;
  /** Resolves once when the server has ended; never rejects. Undefined when only polling can tell. */
  readonly exited?: Promise<ServerExit>;
  /**
   * Resolves when another program may get its address, where that is before `exited`, which waits for its last output;
   * never rejects. From then on nothing is sent there.
   */
  readonly ended?: Promise<unknown>;
}

export interface ServerExit {
  readonly code: number | null;
  readonly signal: string | null;
  /**
   * Why, for the user, where that is known: `out of memory at 200 MiB`, `the job reached its time limit of
   * 2 hours`. Begins small and has no full stop; it takes the place of code and signal.
   */
  readonly reason?: Phrase;
}

export type PollResult =
  | { readonly running: true }
  | { readonly running: false; readonly exit?: ServerExit }
  /** The engine does not say, for example because it is down; the server counts as running. */
  | { readonly running: 'unknown'; readonly reason: Phrase };

export interface Spawner<ProfileOptions = unknown> {
  /**
   * Whether servers run where the hub's loopback is not theirs: then `Hub.hub_connect_url` must lead there from
   * elsewhere, which start and `hub check` see to.
   */
  readonly needsReachableHub?: boolean;
  /** Whether it keeps something of users by `accountName`: then each start has one. */
  readonly needsAccounts?: boolean;
  /**
   * From where `stop`, `poll` and `restore` work on a server: from the machine on which it was started, which is
   * meant when this is left out, or from each machine that reaches the same engine.
   */
  readonly reach?: 'machine' | 'anywhere';
  /** JSON-schema-like description of what a user may choose; undefined when there is nothing. */
  readonly optionsForm?: OptionsForm;
  /** Runs once, before any other call: the place to open connections. When it throws, the hub does not start. */
  open?(known?: Pick<ExamineOptions<ProfileOptions>, 'profileOptions'>): void | Promise<void>;
  /**
   * Starts the server and returns as soon as it has an address. Throws an `Error` when it cannot: its
   * message is shown to the user and to administrators, so it is a sentence and holds no secret. When
   * `signal` aborts, it ends what it started and throws.
   */
  start(request: SpawnRequest<ProfileOptions>): Promise<SpawnedServer>;
  /** Ends the server and everything it started. Resolves when it is gone; idempotent. */
  stop(
    state: SpawnerState,
    options: { readonly graceMs: number; readonly signal: AbortSignal },
  ): Promise<void>;
  poll(state: SpawnerState): Promise<PollResult>;
  /**
   * Finds a server again after a restart of the hub; undefined when it is gone or is not the same. Throws when
   * the engine does not say: the hub asks again.
   */
  restore(
    state: SpawnerState,
    handlers: Pick<StartCallbacks, 'onOutput'>,
  ): Promise<SpawnedServer | undefined>;
  /**
   * Goes on with a start of an earlier hub by the state that `keepState` stored: for a server that waits in a
   * queue the hub may be restarted. Otherwise as `start`, with the environment the server has already; undefined
   * when nothing is left of it. When the hub ends, `start` and `resume` reject after `[Symbol.asyncDispose]`
   * and end nothing that has a kept state.
   */
  resume?(state: SpawnerState, request: ResumeRequest): Promise<SpawnedServer | undefined>;
  /**
   * Ends what `start` left of a server whose state was never stored, because the hub was killed before
   * `start` returned. Called at the start of a hub for servers found in that condition; idempotent.
   */
  discard?(
    serverId: string,
    options: { readonly graceMs: number } & Pick<StartCallbacks, 'isOurs'>,
  ): Promise<void>;
  /**
   * Removes for ever what is kept of a server between its runs, such as its stopped container or its volume.
   * Called after `stop`, when the server or its user is deleted. Idempotent; when it throws, server and
   * user stay, and the sentence is shown.
   */
  delete?(
    server: ServerIdentity,
    options: {
      /**
       * Whether the user is deleted with it, and all that is kept of the user can go. A user without servers has
       * the default one named, with an id that no server ever had.
       */
      readonly withUser: boolean;
      readonly signal: AbortSignal;
    },
  ): Promise<void>;
  /**
   * Looks at the engine for `hub doctor`: whether it answers, and would start the servers of the configuration.
   * Called without `open`; changes nothing, pulls nothing, and rejects only when `signal` aborts.
   */
  examine?(options: ExamineOptions<ProfileOptions>): Promise<readonly Finding[]>;
  /**
   * Space of the folder that a server would run in, or of the one that it would be made in; undefined where that is not
   * known. With less than `Spawner.home_min_free` the start gets `Spawner.rescue_cmd` for its command.
   */
  homeSpace?(request: Pick<SpawnRequest, 'workingDirectory'>): Promise<HomeSpace | undefined>;
  /**
   * Lets a running server rest, with all that it has in memory, until `unpause`; both idempotent. Resolves to false where it cannot. `stop` ends a paused
   * one, too. Left out where that cannot be: then `Spawner.idle_action` cannot be `pause`.
   */
  pause?(state: SpawnerState): Promise<boolean>;
  unpause?(state: SpawnerState): Promise<void>;
  /** CPU and memory of the server's whole process tree. */
  usage?(states: readonly SpawnerState[]): Promise<readonly (ResourceUsage | undefined)[]>;
  /** Closes what `open` opened, and leaves the servers running. Also called without `open`, after a trial. */
  [Symbol.asyncDispose]?(): Promise<void>;
}

export interface ExamineOptions<ProfileOptions = unknown> extends CallOptions {
  /** `options` of each profile of this spawner, parsed, by its name; by undefined, of no profile. */
  readonly profileOptions: ReadonlyMap<string | undefined, ProfileOptions>;
}

export interface ResourceUsage {
  /** Cores in use, 1 is one core. */
  readonly cpuCores: number;
  /** CPU time since the server began, where the engine counts it: none is lost between two measurements. */
  readonly cpuSeconds?: number | undefined;
  readonly memoryBytes: number;
  readonly uptimeSeconds?: number;
  readonly processes?: number;
}

export interface HomeSpace {
  readonly totalBytes: number;
  /** What the account of the server may still fill. */
  readonly freeBytes: number;
}

export interface OptionsForm {
  readonly fields: readonly OptionsField[];
}

export interface OptionsField {
  readonly name: string;
  /** What the page calls it: for all readers, or in languages, by BCP 47 tag. */
  readonly label: LocalizedText | Text;
  readonly help?: LocalizedText | Text;
  readonly type: 'text' | 'number' | 'checkbox' | 'select';
  readonly choices?: readonly { readonly value: string; readonly label: LocalizedText }[];
  readonly default?: string;
  readonly required?: boolean;
  readonly min?: number;
  readonly max?: number;
}
