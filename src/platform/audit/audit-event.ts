import type { AuditAction } from './actions.ts';
import type { AuditDetail } from './detail-labels.ts';

export type AuditResult = 'done' | 'refused' | 'failed';

/** What a action was done to. */
export interface AuditTarget {
  readonly kind:
    | 'user'
    | 'group'
    | 'role'
    | 'service'
    | 'server'
    | 'token'
    | 'session'
    | 'client'
    | 'route'
    | 'lockout'
    | 'budget'
    | 'hub';
  /** By which it is found: of the user whose server, token or login it is, else its own. */
  readonly name: string;
  /** Name of the server, or id of the token or login, of the user `name`. */
  readonly part?: string;
}

/** Something that is done, refused or failed, for the audit log; who does it is known from the actor. */
export interface AuditEvent {
  readonly action: AuditAction;
  readonly target?: AuditTarget;
  /** Names of the users it was done to, where these can be many; each finds it. */
  readonly users?: readonly string[];
  /** Done, unless given. */
  readonly result?: AuditResult;
  /** A few short facts; never a secret. */
  readonly detail?: AuditDetail;
}

/** One row of the audit log. */
export interface AuditEntry {
  readonly id: number;
  readonly at: Date;
  /** For how many entries alike it stands: it is like the last of them. */
  readonly count: number;
  readonly actor: {
    readonly kind: ActorKind;
    readonly name: string | undefined;
    readonly sessionId: string | undefined;
    readonly tokenId: string | undefined;
    readonly address: string | undefined;
  };
  readonly action: string;
  readonly target: AuditTarget | undefined;
  /** Users who were made together, or put into a group or taken out. */
  readonly users: readonly string[];
  readonly result: AuditResult;
  readonly detail: Readonly<Record<string, unknown>>;
  /** Name of the instance of the hub; undefined for a command in a process of its own. */
  readonly instance: string | undefined;
}

/** `proxy_api`: who has the token of `Hub.proxy_api`. */
export type ActorKind = 'user' | 'service' | 'anonymous' | 'hub' | 'command_line' | 'proxy_api';
