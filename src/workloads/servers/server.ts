import { serverNamePattern } from '../../platform/config/common-schema.ts';
import { encodeSegment } from '../../platform/http/request-address.ts';
import { type Phrase, type Text, text } from '../../platform/texts/text.ts';
import type { SpawnerState, SpawnPhase } from '../../plugin/host/spawn-request.ts';
import { endedWithoutHub } from './start-texts.ts';
import type { LimitClock, LimitKind } from './time-limits.ts';

/** Where a server is in its life; each state has one successor but for a failed or cancelled start. */
export type ServerState = 'stopped' | 'starting' | 'running' | 'stopping';

/** Which state may follow which. A start that fails or is cancelled leads back to stopped. */
export const nextStates = {
  stopped: ['starting'],
  starting: ['running', 'stopping', 'stopped'],
  running: ['stopping', 'stopped'],
  stopping: ['stopped'],
} as const satisfies Record<ServerState, readonly ServerState[]>;

/** Why a server is not running although it was started. */
export interface ServerFailure {
  readonly message: Phrase;
  readonly at: Date;
  /** The last lines the server printed. */
  readonly output: readonly string[];
}

/** The instance of the hub that runs a server. */
export interface ServerInstance {
  /** Of one run of the instance. */
  readonly id: string;
  readonly name: string;
  readonly machineId: string;
  /** Where other instances reach it. */
  readonly url: string | undefined;
  /** Whether it had its lease when this was read. */
  readonly isLive: boolean;
  readonly leaseUntil: Date;
}

/** A user's server, as stored. */
export interface Server {
  readonly id: string;
  readonly userId: string;
  readonly userName: string;
  /** Empty for the default server. */
  readonly name: string;
  readonly displayName: string | undefined;
  readonly state: ServerState;
  readonly url: string | undefined;
  readonly spawnerState: SpawnerState;
  readonly userOptions: Readonly<Record<string, unknown>>;
  /** Why it is not running. */
  readonly failure: ServerFailure | undefined;
  /** The last one, until a start goes well. */
  readonly lastFailure: ServerFailure | undefined;
  readonly createdAt: Date;
  /** Since when its last start goes or went on. */
  readonly startingAt?: Date | undefined;
  /** When its last run ended; undefined while it runs, and where that is not known. */
  readonly stoppedAt?: Date | undefined;
  readonly startedAt: Date | undefined;
  readonly lastActivityAt: Date | undefined;
  /** Undefined for a server that is stopped, or handed over by an instance that stops. */
  readonly instance: ServerInstance | undefined;
  /** The only machine from which its spawner reaches it; undefined where any will do. */
  readonly machineId?: string | undefined;
  /** Undefined where nothing limits how long it runs. */
  readonly limits?: LimitClock | undefined;
  /** Since when it is paused; undefined for one that is not. */
  readonly pausedAt?: Date | undefined;
  /** The limit that ended its last run, if one did. */
  readonly stoppedBy?: LimitKind | undefined;
}

/** Since when nothing is known of a server, because the instance that runs it is away. */
export function unreachableSince({ state, instance }: Server): Date | undefined {
  return state === 'stopped' || instance?.isLive !== false ? undefined : instance.leaseUntil;
}

/** One step of a start, as its page and the event stream show it. */
export interface ServerProgress {
  /** 0 to 100. */
  readonly progress: number;
  readonly message: Phrase;
  readonly phase?: SpawnPhase;
  /** Why, as the engine puts it. */
  readonly reason?: string;
  readonly ready?: true;
  readonly failed?: true;
  /** Where browsers reach the server, once ready: a path, or a URL where it has an origin of its own. */
  readonly url?: string;
  /** Last lines of output, when failed. */
  readonly output?: readonly string[];
}

/** Public path of a user's server below the base path; ends in a slash. */
export function serverPrefix(basePath: string, userName: string, serverName: string): string {
  const user = `${basePath}user/${encodeSegment(userName)}/`;
  return serverName === '' ? user : `${user}${encodeSegment(serverName)}/`;
}

/** Whether a name can be that of a named server. */
export function isServerName(name: string): boolean {
  return serverNamePattern.test(name);
}

/** What is said of a server that did not outlive its hub. */
export function whyLost({ state }: Server): Text {
  return state === 'running'
    ? endedWithoutHub
    : text`The hub stopped while the server was starting or stopping.`;
}
