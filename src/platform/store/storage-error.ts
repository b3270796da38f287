import { HubError } from '../errors.ts';
import { type Text, text } from '../texts/text.ts';

/** What a storage error means to the caller that has to react to it. */
export type StorageFailure =
  | 'locked'
  | 'full'
  | 'read_only'
  | 'corrupt'
  | 'unreachable'
  | 'refused'
  | 'overloaded'
  | 'invalid_text'
  | 'other';

const failureBySqliteCode: Readonly<Record<number, StorageFailure>> = {
  5: 'locked',
  6: 'locked',
  8: 'read_only',
  10: 'unreachable',
  11: 'corrupt',
  13: 'full',
  14: 'unreachable',
  26: 'corrupt',
};

const failureByPostgresCode: Readonly<Record<string, StorageFailure>> = {
  '25006': 'read_only',
  '53100': 'full',
  '40001': 'locked',
  '40P01': 'locked',
  '55P03': 'locked',
  '57014': 'overloaded',
  '22021': 'invalid_text',
  '22P05': 'invalid_text',
  '3D000': 'refused',
};

const failureByPostgresClass: Readonly<Record<string, StorageFailure>> = {
  '08': 'unreachable',
  '28': 'refused',
  '53': 'overloaded',
  '57': 'unreachable',
  '58': 'unreachable',
  XX: 'corrupt',
};

const networkCodes = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ENOENT',
]);

// The PostgreSQL client gives these no code.
const lostConnection =
  /^Connection terminated|^timeout exceeded when trying to connect|connection error and is not queryable|^Query read timeout|^timeout expired|has been discarded|^Client was closed|server closed the connection/i;

const messages: Readonly<Record<Exclude<StorageFailure, 'invalid_text' | 'other'>, Text>> = {
  locked: text`The database is locked by another process.`,
  full: text`The disk of the database is full.`,
  read_only: text`The database cannot be written.`,
  corrupt: text`The database is damaged.`,
  unreachable: text`The database cannot be reached.`,
  refused: text`The database refuses the connection.`,
  overloaded: text`The database does not answer in time.`,
};

/** Tells what kind of storage failure an error is, or undefined when it comes from elsewhere. */
export function storageFailureOf(error: unknown): StorageFailure | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code, errcode } = error as { code?: unknown; errcode?: unknown };
  if (code === 'ERR_SQLITE_ERROR') {
    return failureBySqliteCode[Number(errcode) & 0xff] ?? 'other';
  }
  if (code === 'ERR_INVALID_STATE' && error.message === 'database is not open')
    return 'unreachable';
  if (typeof code === 'string') {
    if (networkCodes.has(code)) return 'unreachable';
    if (!/^[0-9A-Z]{5}$/.test(code)) return undefined;
    return failureByPostgresCode[code] ?? failureByPostgresClass[code.slice(0, 2)] ?? 'other';
  }
  return lostConnection.test(error.message) ? 'unreachable' : undefined;
}

/**
 * Turns a failure of the storage into a `storage_unavailable` HubError; gives anything else back as
 * it is: a broken constraint is for the store that knows what it means.
 */
export function toStorageError(error: unknown): unknown {
  const failure = storageFailureOf(error);
  if (failure === undefined || failure === 'other') return error;
  if (failure === 'invalid_text') {
    return new HubError('bad_request', text`A text holds a character that cannot be stored.`, {
      cause: error,
    });
  }
  return new HubError('storage_unavailable', messages[failure], {
    cause: error,
    hint: text`Try again in a moment. If it stays so, tell the operator of this hub.`,
    retryAfterSeconds: 5,
  });
}

/**
 * Whether an error of the storage says that PostgreSQL undid work because it and another transaction waited for each
 * other.
 */
export function isDeadlock(error: unknown): boolean {
  const { code } = codesOf(error instanceof HubError ? error.cause : error);
  return code === '40P01' || code === '40001';
}

/** Whether an error says that a unique column or a primary key already holds the value. */
export function isUniqueViolation(error: unknown): boolean {
  const { code, errcode } = codesOf(error);
  return code === '23505' || errcode === 2067 || errcode === 1555;
}

/** Whether an error says that the row referred to does not exist. */
export function isForeignKeyViolation(error: unknown): boolean {
  const { code, errcode } = codesOf(error);
  return code === '23503' || errcode === 787;
}

function codesOf(error: unknown): { code?: unknown; errcode?: unknown } {
  return error instanceof Error ? (error as { code?: unknown; errcode?: unknown }) : {};
}
