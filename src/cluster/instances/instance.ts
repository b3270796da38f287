import type { ProcessIdentity } from '../../platform/process-table/process-table.ts';

/** What an instance says of itself when it takes its lease. */
export interface InstanceDescription {
  /** Of this run: the next one has another. */
  readonly id: string;
  /** `Hub.instance_name`: the next run has the same. */
  readonly name: string;
  /** Where other instances reach its internal listener. */
  readonly url: string | undefined;
  /** For people: the host name. */
  readonly host: string;
  readonly machineId: string;
  readonly process: ProcessIdentity;
  readonly version: string;
  readonly basePath: string;
  /** A digest of each key of `Hub.cookie_secret`, in order. */
  readonly keyDigests: readonly string[];
  readonly settingsDigest: string;
}

/** A hub that runs on the database, or ran on it last under this name. */
export interface Instance extends InstanceDescription {
  /** By the clock of the database, as `leaseUntil`. */
  readonly startedAt: Date;
  readonly leaseUntil: Date;
  /** Whether it had its lease when this was read. */
  readonly isLive: boolean;
}
