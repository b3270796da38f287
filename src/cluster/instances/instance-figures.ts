import { availableParallelism, loadavg } from 'node:os';
import { cpuUsage, memoryUsage } from 'node:process';

/** A gateway process that follows the feed of an instance. */
export interface GatewayIdentity {
  readonly name: string;
  readonly version: string;
  /** Whether it was started by that instance, or one before it on the same machine. */
  readonly isLocal: boolean;
}

/** What a gateway process told an instance of itself, not always the one that it follows. */
export interface ReportedGateway {
  readonly name: string;
  readonly host: string;
  readonly pid: number;
  /** This and the next one in milliseconds since 1970, by the clock of the instance. */
  readonly startedAtMs: number;
  readonly reportedAtMs: number;
  /** Of clients, open. */
  readonly connections: number;
  readonly webSockets: number;
  /** Forwarded since it was started. */
  readonly requests: number;
  /** How old the last news of the feed was when it reported; up to a second where all is well. */
  readonly feedLagMs: number;
}

/** What an instance tells of itself. */
export interface InstanceReport extends InstanceFigures {
  /** Undefined from one of a former version. */
  readonly gateways?:
    | {
        readonly following: readonly GatewayIdentity[];
        readonly reported: readonly ReportedGateway[];
      }
    | undefined;
}

/** What an instance uses, and how busy its machine is. */
export interface InstanceFigures {
  /** Resident memory of the process. */
  readonly memoryBytes: number;
  /** Cores in use by the process since it was asked last; 1 is one core. */
  readonly cpuCores: number;
  /** Processes that ran or waited for a core of the machine, over the last minute. */
  readonly loadAverage: number;
  readonly machineCores: number;
}

/** Spans shorter than this give the figure of the one before. */
const minSpanMs = 1_000;

/** Measures the process it runs in. */
export function createFiguresReader(): () => InstanceFigures {
  let usedUs = 0;
  let atMs = 0;
  let cpuCores = 0;
  return () => {
    const nowMs = performance.now();
    if (nowMs - atMs >= minSpanMs) {
      const { user, system } = cpuUsage();
      cpuCores = (user + system - usedUs) / 1000 / (nowMs - atMs);
      usedUs = user + system;
      atMs = nowMs;
    }
    const [loadAverage = 0] = loadavg();
    const machineCores = availableParallelism();
    return { memoryBytes: memoryUsage.rss(), cpuCores, loadAverage, machineCores };
  };
}
