import type { Phrase } from '../../platform/texts/text.ts';

/** JSON that identifies a started server to `restore`; never holds a secret. */
export type SpawnerState = Readonly<Record<string, unknown>>;

/** What a server may use at most. A spawner that cannot hold a limit refuses it in `start`. */
export interface ResourceLimits {
  readonly memoryBytes?: number;
  /** 1 is one core, 0.5 half of one. */
  readonly cpuCores?: number;
  /** Whole GPUs. */
  readonly gpus?: number;
  /** Processes and threads at once. */
  readonly processes?: number;
}

/** What is kept for a server, whatever others use; an engine that knows no such thing leaves it out. */
export type ResourceGuarantees = Pick<ResourceLimits, 'memoryBytes' | 'cpuCores'>;

/** Storage that a server finds at a path of its own file system. */
export interface Volume {
  /**
   * A folder of the engine's machine where it begins with a slash, otherwise the name of a volume; of
   * `Spawner.volumes`, placeholders filled in so that no two users share one (`{username}`, `{server}`).
   */
  readonly source: string;
  /** The folder in it that is mounted, placeholders filled in; all of it where there is none. */
  readonly subPath?: string;
  /** Absolute path in the server. */
  readonly target: string;
  readonly readOnly: boolean;
  /** Whose alone it is, by the placeholders of its source; left out where several users share it. */
  readonly owner?: 'user' | 'server';
}

/** A volume that was there before the hub, and that an administrator has made one of a user. */
export interface GivenVolume {
  /** Empty for the default server, and for a volume of all servers of the user. */
  readonly serverName: string;
  /** Which volume of the configuration it takes the place of. */
  readonly volume: string;
  /** What the engine calls it. */
  readonly source: string;
}

/** Which server is meant, in the words of every engine. */
export interface ServerIdentity {
  /** Unique and stable; safe for file names. */
  readonly serverId: string;
  readonly userName: string;
  /** Empty for the default server. */
  readonly serverName: string;
  /**
   * A name for what the engine keeps of this server: a DNS label (RFC 1123) of at most 50 characters, the
   * same at each start, and of no other server of this hub, whatever users are called. Put a prefix
   * before it that is of this hub alone.
   */
  readonly objectName: string;
  /**
   * What `{username}` stands for: a name that stays when the user is renamed, and is no other user's nor that of
   * a later user of the same name. Left out where none was needed yet; see `Spawner.needsAccounts`.
   */
  readonly accountName?: string;
  /** Those of the user and of all their servers; left out where a spawner is not to use volumes. */
  readonly givenVolumes?: readonly GivenVolume[];
}

/** Everything `start` is told. `ProfileOptions` is what `profileOptionsSchema` makes of `options` in a profile. */
export interface SpawnRequest<ProfileOptions = unknown> extends ServerIdentity, StartCallbacks {
  /** Names of the user's groups at the hub. */
  readonly groups: readonly string[];
  /** Name of the chosen profile; undefined where there are none. */
  readonly profile?: string;
  /** `options` of the profile, or of no profile, as `profileOptionsSchema` parsed them. */
  readonly profileOptions: ProfileOptions;
  readonly command: readonly string[];
  /** The whole environment of the server, secrets included: never log it. */
  readonly environment: Readonly<Record<string, string>>;
  /** Directory the server runs in; the spawner makes it when it is missing. */
  readonly workingDirectory: string;
  readonly systemUser?: string;
  readonly limits: ResourceLimits;
  readonly guarantees: ResourceGuarantees;
  /** `limits.memoryBytes`, for spawners that know no other limit. */
  readonly memoryLimitBytes?: number;
  readonly volumes: readonly Volume[];
  /** Address a TCP server should listen on. */
  readonly ip: string;
  /** Whether to listen on a Unix socket instead of a port. */
  readonly socket: boolean;
  /**
   * What was asked for at the start, an object of any JSON. Fields of `optionsForm` are checked and
   * have their declared type; everything else is as the API was given it, unchecked: up to 64 KiB for all
   * servers of the user, lists and nested objects included. Trust nothing in it that you have not checked.
   */
  readonly userOptions: Readonly<Record<string, unknown>>;
  /**
   * What each authenticator keeps of the user (`AuthenticatedUser.authState`), by the authenticator's name;
   * tokens of the user among it, so never log it. Empty where nothing is kept.
   */
  readonly authStates: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly stopGraceMs: number;
  /** Told before the command starts: adds what depends on the address, such as HUB_SERVICE_URL. */
  readonly environmentForUrl: (url: string) => Readonly<Record<string, string>>;
}

/** How a start that is under way speaks with the hub. */
export interface StartCallbacks {
  /** Aborts when the start is cancelled or takes longer than `Spawner.start_timeout`. */
  readonly signal: AbortSignal;
  /** One line of output at a time. */
  readonly onOutput: (line: string, stream: 'stdout' | 'stderr') => void;
  readonly onProgress: (event: SpawnProgress) => void;
  /**
   * Waits for the server itself to tell where it listens: `POST HUB_ADDRESS_URL` with its own token and
   * `{"port": 4711}` or `{"host": "node7", "port": 4711}`. To be called before the server can run.
   * Resolves to the URL that `accept` made of it; rejects when `signal` aborts.
   */
  readonly awaitAddress: (accept: AcceptAddress) => Promise<string>;
  /**
   * Stores a state before there is an address, for starts that take long: should the hub end before `start`
   * comes back, the next one calls `resume` with it. Without it that hub calls `discard`.
   */
  readonly keepState: (state: SpawnerState) => Promise<void>;
  /**
   * Whether no other hub can have taken the server over: false when this one could not renew its lease for ten
   * seconds since the start began, for example because its process was stopped. Ask at the last moment before
   * the server begins, and before what earlier starts left is ended.
   */
  readonly isOurs: () => boolean;
}

/** What `Spawner.resume` is told of a start that an earlier hub began. */
export interface ResumeRequest extends ServerIdentity, StartCallbacks {}

/** An address as a server told it, over the API. Anyone who has the server's token can tell one. */
export interface ReportedAddress {
  /** Host name or IP address; undefined when the server told the port alone. */
  readonly host: string | undefined;
  readonly port: number;
}

/**
 * Makes the URL of the server from its report, `http://node7:4711`, or throws an `Error` whose sentence
 * the server is answered with; it may then tell another. Admit only hosts on which the engine runs
 * this very server: the hub sends the requests of the server's visitors there. The first one that is
 * accepted counts, no other after it.
 */
export type AcceptAddress = (reported: ReportedAddress) => string | Promise<string>;

/**
 * What a start does at the moment.
 *
 * `pending`: it waits in a queue of the engine, as long as that takes: `Spawner.start_timeout` does not
 * run meanwhile, and the start does not count as one of `Hub.concurrent_spawn_limit`.
 * `pulling`, `scheduling`: an image is fetched, a machine is looked for; each event begins the timeout again.
 * `starting`: it goes on; the timeout begins again after another phase.
 */
export type SpawnPhase = 'pending' | 'scheduling' | 'pulling' | 'starting';

export interface SpawnProgress {
  /** 0 to 100; up to 50 while there is no address, since the hub goes on from 60. */
  readonly progress: number;
  /** A sentence for the user: `Waiting in the queue, 3rd of 17.` */
  readonly message: Phrase;
  /** Left out, the phase stays as it is and no timeout begins again. */
  readonly phase?: SpawnPhase;
  /** Why, for programs, as the engine puts it: `Resources`, `Priority`. For people, `message` says it too. */
  readonly reason?: string;
}
