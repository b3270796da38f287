import { HubError } from '../../platform/errors.ts';
import type { OldDatabase } from '../../platform/store/old-database.ts';
import { isTrue } from './old-hub.ts';

/** What an authenticator of JupyterHub kept of a password. */
export interface OldPassword {
  readonly userName: string;
  /** bcrypt. */
  readonly hash: string;
  /** Of the second factor, in Base32. */
  readonly totpSecret?: string;
  /** Whether the user signed up, and no administrator has let them in yet. */
  readonly isWaiting?: boolean;
}

/** Reads the table of NativeAuthenticator. Throws `bad_request`. */
export async function readNativePasswords(database: OldDatabase): Promise<readonly OldPassword[]> {
  const table = 'users_info';
  if (!database.has(table)) {
    throw new HubError('bad_request', `The database has no table ${table} of NativeAuthenticator.`);
  }
  const rows = await database.read(table, [
    'username',
    'password',
    'is_authorized',
    'has_2fa',
    'otp_secret',
  ]);
  return rows.map((row) => ({
    userName: row.username ?? '',
    hash: textOf(row.password ?? ''),
    ...(isTrue(row.has_2fa) && row.otp_secret !== null && { totpSecret: row.otp_secret }),
    isWaiting: !isTrue(row.is_authorized),
  }));
}

/** PostgreSQL writes bytes as `\\x` and their digits. */
function textOf(bytes: string): string {
  return bytes.startsWith('\\x') ? Buffer.from(bytes.slice(2), 'hex').toString() : bytes;
}
