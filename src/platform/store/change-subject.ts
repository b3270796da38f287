import type { Logger } from 'pino';

/**
 * What a change concerned: caches and listeners then look again at this much alone, so that one person's logout does not
 * make the hub look up everyone else again.
 */
export type AnnouncedSubject =
  | RightsChange
  /** A user was added; no one who was there before loses a right. */
  | { readonly kind: 'user_added' }
  /** A login ended, and with it every token that was bound to it. */
  | { readonly kind: 'session_ended'; readonly sessionId: string }
  | { readonly kind: 'tokens_revoked'; readonly tokenIds: readonly string[] }
  /** The display name, e-mail address or picture of a user is another: takes no right from anyone. */
  | { readonly kind: 'user_info_changed'; readonly userId: string }
  | StateChange;

/** As listeners are called: `all` where changes may have been missed, as by a connection that was lost. */
export type ChangeSubject = AnnouncedSubject | { readonly kind: 'all' };

/** Anyone may have lost any right. */
export type RightsChange =
  /** Accounts, roles, shares or the configuration of rights are others. */
  | { readonly kind: 'rights_changed' }
  /** Groups, their members or their properties are others. */
  | { readonly kind: 'groups_changed' }
  /** The services that were added at run time, and what they may do, are others. */
  | { readonly kind: 'runtime_services_changed' };

/** Something is elsewhere or in another state than before: takes no right from anyone. */
export type StateChange =
  /** A user's server started, ended, changed hands or was removed. */
  | { readonly kind: 'server_changed'; readonly serverId: string }
  /** An instance of the hub came or went. */
  | { readonly kind: 'instances_changed' }
  /** A service started, ended or changed hands. */
  | { readonly kind: 'services_changed' }
  /** A key that signs tokens was made, or ended before its time. */
  | { readonly kind: 'signing_keys_changed' }
  /** All users are told something else. */
  | { readonly kind: 'notices_changed' }
  /** An instance was told to read its configuration file again, and so shall all others. */
  | { readonly kind: 'reload_requested'; readonly instanceId: string };

/** By which caches know what is told to all users, as they know tokens by their ids. */
export const noticesId = 'notices';

/** With more tokens, dropping everything is the lesser work. */
const maxTokenIds = 100;

/** The subject of a revocation: that of any right where it concerns many tokens. */
export function tokensRevoked(tokenIds: readonly string[]): AnnouncedSubject {
  return tokenIds.length > maxTokenIds
    ? { kind: 'rights_changed' }
    : { kind: 'tokens_revoked', tokenIds };
}

const takesRights = {
  all: true,
  rights_changed: true,
  groups_changed: true,
  runtime_services_changed: true,
  user_added: false,
  session_ended: false,
  tokens_revoked: false,
  user_info_changed: false,
  server_changed: false,
  instances_changed: false,
  services_changed: false,
  signing_keys_changed: false,
  notices_changed: false,
  reload_requested: false,
} as const satisfies Record<ChangeSubject['kind'], boolean>;

/** Whether anyone may have lost any right by a change, and not only those whom its subject names. */
export function concernsRights({ kind }: ChangeSubject): boolean {
  return takesRights[kind];
}

/** A change as the log of changes keeps it. */
export interface LoggedChange {
  readonly kind: string;
  readonly subject: string | null;
}

/**
 * What logged changes concerned, in their order: revoked tokens together, and `all` once for those that are not known
 * here, as those of a newer hub are.
 */
export function subjectsOf(changes: readonly LoggedChange[]): ChangeSubject[] {
  const tokenIds = new Set<string>();
  const subjects = new Map<string, ChangeSubject>();
  const add = (subject: ChangeSubject) => subjects.set(JSON.stringify(subject), subject);
  for (const { kind, subject } of changes) {
    if (kind === 'token_revoked' && subject !== null) tokenIds.add(subject);
    else add(readSubject(kind, subject) ?? { kind: 'all' });
  }
  if (tokenIds.size > 0) add(tokensRevoked([...tokenIds]));
  return [...subjects.values()];
}

function readSubject(kind: string, subject: string | null): ChangeSubject | undefined {
  switch (kind) {
    case 'rights_changed':
    case 'groups_changed':
    case 'runtime_services_changed':
    case 'user_added':
    case 'instances_changed':
    case 'services_changed':
    case 'signing_keys_changed':
    case 'notices_changed':
      return { kind };
    case 'session_ended':
      return subject === null ? undefined : { kind, sessionId: subject };
    case 'reload_requested':
      return subject === null ? undefined : { kind, instanceId: subject };
    case 'server_changed':
      return subject === null ? undefined : { kind, serverId: subject };
    case 'user_info_changed':
      return subject === null ? undefined : { kind, userId: subject };
    default:
      return undefined;
  }
}

type ChangeKind = ChangeSubject['kind'];

/** Hears of a change. */
export type ChangeListener<Kind extends ChangeKind = ChangeKind> = (
  subject: Extract<ChangeSubject, { readonly kind: Kind }>,
) => void;

/** Who wants to know that users, roles, groups, sessions or tokens changed. */
export interface ChangeListeners {
  /** Adds a listener to changes of these kinds, or of all; returns how to remove it. */
  add<Kind extends ChangeKind = ChangeKind>(
    listener: ChangeListener<Kind>,
    kinds?: readonly Kind[],
  ): () => void;
  callAll(subject: ChangeSubject): void;
}

/** A listener that throws does not keep the others from being called. */
export function createChangeListeners({ log }: { readonly log: Logger }): ChangeListeners {
  // A listener added twice is called twice, hence a wrapper for each.
  const listeners = new Set<{ readonly call: ChangeListener }>();
  return {
    add(listener, kinds) {
      const wanted: readonly ChangeKind[] | undefined = kinds;
      const entry = {
        call(subject: ChangeSubject) {
          if (wanted?.includes(subject.kind) !== false) listener(subject as never);
        },
      };
      listeners.add(entry);
      return () => listeners.delete(entry);
    },
    callAll(subject) {
      for (const { call } of listeners) {
        try {
          call(subject);
        } catch (error) {
          log.error({ err: error }, 'database change listener failed');
        }
      }
    },
  };
}
