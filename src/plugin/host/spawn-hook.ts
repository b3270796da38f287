import type { PluginLog } from '../../platform/logging/plugin-log.ts';
import type { CallOptions, PluginDeclaration, PluginSurroundings } from './authenticator.ts';
import type {
  ResourceGuarantees,
  ResourceLimits,
  ServerIdentity,
  SpawnRequest,
  Volume,
} from './spawn-request.ts';

/**
 * The contract of a hook, the default export of a file in `plugins/`: what an operator wants done before each
 * start of a user's server and after each stop, whatever spawner starts it. `Spawner.hooks` names it.
 */
export interface SpawnHookPlugin<Options = unknown> extends PluginDeclaration<Options> {
  readonly kind: 'spawn-hook';
  /**
   * Puts the hook together; throws when that is impossible. Also called for trial, as for authenticators:
   * it connects to nothing, starts nothing and writes nothing; that is for `open`.
   */
  create(options: Options, host: SpawnHookHost): SpawnHook | Promise<SpawnHook>;
}

export interface SpawnHookHost extends PluginSurroundings {
  readonly log: PluginLog;
}

export interface SpawnHook {
  /** Runs once, before any other call: the place to open connections. When it throws, the hub does not start. */
  open?(): void | Promise<void>;
  /**
   * Runs before each start, within `Spawner.hook_timeout`, when `signal` aborts; also when the start is
   * cancelled. Returns what to change. Throws an `Error` to refuse the start: its message is shown to the user,
   * so it is a sentence and holds no secret.
   */
  beforeStart?(
    start: StartSettings,
    options: CallOptions,
    // biome-ignore lint/suspicious/noConfusingVoidType: a hook that changes nothing returns nothing
  ): Promise<StartChanges | void>;
  /**
   * Runs when a server is gone, whatever ended it: also after a start that failed or was refused, and at the next
   * start of a hub for a server that ended while none ran. A hub killed in the middle of it has it run
   * again, so do again what was done already. What it throws is logged.
   */
  afterStop?(server: ServerIdentity, options: CallOptions): Promise<void>;
  /** Closes what `open` opened. Also called without `open`, after a trial. */
  [Symbol.asyncDispose]?(): Promise<void>;
}

/** What a server is about to be started with, as hooks find it: that of the configuration and of hooks before. */
export interface StartSettings
  extends ServerIdentity,
    Pick<
      SpawnRequest,
      'groups' | 'profile' | 'systemUser' | 'userOptions' | 'authStates' | keyof ChangeableSettings
    > {}

/** What hooks can change of a start. */
export interface ChangeableSettings {
  readonly command: readonly string[];
  /** What the configuration, the profile and the authenticators add; without what the hub adds itself, such as its token. */
  readonly environment: Readonly<Record<string, string>>;
  /** Absolute path of the folder that the server runs in. */
  readonly workingDirectory: string;
  readonly limits: ResourceLimits;
  readonly guarantees: ResourceGuarantees;
  /** Placeholders filled in. */
  readonly volumes: readonly Volume[];
}

/** What of a start is to be otherwise; what is left out stays. Anything else in it fails the start. */
export interface StartChanges
  extends Partial<Pick<ChangeableSettings, 'command' | 'workingDirectory' | 'volumes'>> {
  /** Variables to set; null leaves one out. */
  readonly environment?: Readonly<Record<string, string | null>>;
  /** Limits to set; null for none. */
  readonly limits?: OrNull<ResourceLimits>;
  readonly guarantees?: OrNull<ResourceGuarantees>;
}

type OrNull<Values> = { readonly [Key in keyof Values]?: Exclude<Values[Key], undefined> | null };
