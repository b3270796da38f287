import { randomUUID } from 'node:crypto';
import type { Kysely } from 'kysely';
import type { AuditAction } from '../../platform/audit/actions.ts';
import type { Sealer } from '../../platform/crypto/sealer.ts';
import { HubError } from '../../platform/errors.ts';
import { requireBoundedDepth } from '../../platform/http/body.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import { isForeignKeyViolation } from '../../platform/store/storage-error.ts';
import type { Row, Tables } from '../../platform/store/tables.ts';
import { lockUser } from '../../platform/store/user-lock.ts';
import { recordOfUser, withoutUser } from '../../platform/store/user-name-of.ts';
import { text } from '../../platform/texts/text.ts';

/** Who a user is at a provider. */
export interface IdentityKey {
  readonly authenticator: string;
  readonly issuer: string;
  /** Stable at the issuer, unlike a name or an address. */
  readonly subject: string;
}

/** A provider's account that is linked to a user. */
export interface Identity extends IdentityKey {
  readonly id: string;
  readonly userId: string;
  /** Text by which the person recognises it, for example an e-mail address. */
  readonly display: string | undefined;
  readonly createdAt: Date;
}

/** What a provider returned at login, and when it last confirmed it. */
export interface StoredAuthState {
  /** Undefined when none was kept, or when no current key opens it. */
  readonly state: Readonly<Record<string, unknown>> | undefined;
  readonly refreshedAt: Date;
}

/** By what users can log in. */
export interface WayIn {
  /** Names of the authenticators whose links count. */
  readonly authenticators: readonly string[];
  /** Whether a password of the hub counts. */
  readonly hasPasswords: boolean;
}

export interface IdentityStore {
  find(key: IdentityKey): Promise<Identity | undefined>;
  findById(id: string): Promise<Identity | undefined>;
  listForUser(userId: string): Promise<Identity[]>;
  /**
   * Links an identity to a user, or updates how it is displayed when it is theirs already. Throws
   * `conflict` when it is another user's and `not_found` when there is no such user.
   */
  link(
    identity: IdentityKey & { readonly userId: string; readonly display?: string },
  ): Promise<Identity>;
  /**
   * Ends a link of this user, unless nothing of `wayIn` would be left. Of several at once, of whatever
   * instance, each sees what the one before it left.
   */
  unlink(
    userId: string,
    identityId: string,
    wayIn?: WayIn,
  ): Promise<'unlinked' | 'unknown' | 'last'>;
  findAuthState(identityId: string): Promise<StoredAuthState | undefined>;
  /** The state that a provider confirmed last, of all the user's; undefined for a user without any. */
  findLatestAuthState(
    userId: string,
  ): Promise<(StoredAuthState & { readonly identityId: string }) | undefined>;
  /** Keeps the state encrypted. With undefined only the time is kept. */
  setAuthState(
    identityId: string,
    state: Readonly<Record<string, unknown>> | undefined,
    refreshedAt: Date,
  ): Promise<void>;
  /** Notes that the provider confirmed the state as it is. */
  setRefreshedAt(identityId: string, refreshedAt: Date): Promise<void>;
  deleteAuthState(identityId: string): Promise<void>;
}

export function createIdentityStore(
  database: Pick<HubDatabase, 'kysely' | 'dialect' | 'transaction' | 'announceChange' | 'audit'>,
  { sealer }: { readonly sealer: Sealer },
): IdentityStore {
  const { kysely } = database;

  async function find({ authenticator, issuer, subject }: IdentityKey) {
    const row = await kysely
      .selectFrom('identities')
      .selectAll()
      .where('authenticator', '=', authenticator)
      .where('issuer', '=', issuer)
      .where('subject', '=', subject)
      .executeTakeFirst();
    return row && toIdentity(row);
  }

  const record = (
    transaction: Kysely<Tables>,
    action: AuditAction,
    { user_id, authenticator }: Row<'identities'>,
  ) => recordOfUser(database, transaction, user_id, { action, detail: { authenticator } });

  function openState(
    identityId: string,
    { encrypted, refreshed_at }: Pick<Row<'auth_states'>, 'encrypted' | 'refreshed_at'>,
  ): StoredAuthState {
    const opened = sealer.open(encrypted, authStateContext(identityId));
    const state = JSON.parse(opened ?? 'null') as Record<string, unknown> | null;
    return { state: state ?? undefined, refreshedAt: new Date(refreshed_at) };
  }

  return {
    find,

    async findById(id) {
      const row = await kysely
        .selectFrom('identities')
        .selectAll()
        .where('id', '=', id)
        .executeTakeFirst();
      return row && toIdentity(row);
    },

    async listForUser(userId) {
      const rows = await kysely
        .selectFrom('identities')
        .selectAll()
        .where('user_id', '=', userId)
        .orderBy('created_at')
        .orderBy('id')
        .execute();
      return rows.map(toIdentity);
    },

    async link({ userId, authenticator, issuer, subject, display = null }) {
      const row: Row<'identities'> = {
        id: randomUUID(),
        user_id: userId,
        authenticator,
        issuer,
        subject,
        display,
        created_at: Date.now(),
      };
      try {
        // One statement: of two logins at once the second finds the first one's link.
        const linked = await database.transaction(async (transaction) => {
          const written = await transaction
            .insertInto('identities')
            .values(row)
            .onConflict((conflict) =>
              conflict
                .columns(['authenticator', 'issuer', 'subject'])
                .doUpdateSet({ display })
                .where('identities.user_id', '=', userId),
            )
            .returningAll()
            .executeTakeFirst();
          if (written?.id === row.id) await record(transaction, 'identity.link', row);
          return written;
        });
        // Every login comes here; most find the link of an earlier one.
        if (linked?.id === row.id) database.announceChange({ kind: 'rights_changed' });
        if (linked !== undefined) return toIdentity(linked);
      } catch (error) {
        throw withoutUser(error);
      }
      throw new HubError('conflict', text`This identity is linked to another user.`);
    },

    async unlink(userId, identityId, wayIn) {
      const outcome = await database.transaction(async (transaction) => {
        await lockUser(transaction, database, userId);
        if (wayIn !== undefined && !(await isOtherWayIn(transaction, userId, identityId, wayIn)))
          return 'last';
        const deleted = await transaction
          .deleteFrom('identities')
          .where('id', '=', identityId)
          .where('user_id', '=', userId)
          .returningAll()
          .executeTakeFirst();
        if (deleted === undefined) return 'unknown';
        await record(transaction, 'identity.unlink', deleted);
        return 'unlinked';
      });
      if (outcome === 'unlinked') database.announceChange({ kind: 'rights_changed' });
      return outcome;
    },

    async findAuthState(identityId) {
      const row = await kysely
        .selectFrom('auth_states')
        .select(['encrypted', 'refreshed_at'])
        .where('identity_id', '=', identityId)
        .executeTakeFirst();
      if (row === undefined) return undefined;
      return openState(identityId, row);
    },

    async findLatestAuthState(userId) {
      const row = await kysely
        .selectFrom('identities')
        .innerJoin('auth_states', 'auth_states.identity_id', 'identities.id')
        .select(['identities.id', 'auth_states.encrypted', 'auth_states.refreshed_at'])
        .where('identities.user_id', '=', userId)
        .orderBy('auth_states.refreshed_at', 'desc')
        .orderBy('identities.id')
        .limit(1)
        .executeTakeFirst();
      return row && { identityId: row.id, ...openState(row.id, row) };
    },

    async setAuthState(identityId, state, refreshedAt) {
      requireBoundedDepth(state);
      const values = {
        encrypted: sealer.seal(JSON.stringify(state ?? null), authStateContext(identityId)),
        refreshed_at: refreshedAt.getTime(),
      };
      try {
        await kysely
          .insertInto('auth_states')
          .values({ identity_id: identityId, ...values })
          .onConflict((conflict) => conflict.column('identity_id').doUpdateSet(values))
          .execute();
      } catch (error) {
        if (!isForeignKeyViolation(error)) throw error;
        throw new HubError('not_found', text`There is no such identity.`, { cause: error });
      }
    },

    async setRefreshedAt(identityId, refreshedAt) {
      await kysely
        .updateTable('auth_states')
        .set({ refreshed_at: refreshedAt.getTime() })
        .where('identity_id', '=', identityId)
        .execute();
    },

    async deleteAuthState(identityId) {
      await kysely.deleteFrom('auth_states').where('identity_id', '=', identityId).execute();
    },
  };
}

/** Whether a user can log in without a link. */
async function isOtherWayIn(
  on: Kysely<Tables>,
  userId: string,
  identityId: string,
  { authenticators, hasPasswords }: WayIn,
): Promise<boolean> {
  if (hasPasswords) {
    const password = await on
      .selectFrom('password_credentials')
      .select('user_id')
      .where('user_id', '=', userId)
      .executeTakeFirst();
    if (password !== undefined) return true;
  }
  const other = await on
    .selectFrom('identities')
    .select('id')
    .where('user_id', '=', userId)
    .where('id', '!=', identityId)
    .where('authenticator', 'in', [...authenticators])
    .executeTakeFirst();
  return other !== undefined;
}

/** Binds the ciphertext to its row: moved to another identity it does not open. */
export function authStateContext(identityId: string): string {
  return `auth-state:${identityId}`;
}

function toIdentity(row: Row<'identities'>): Identity {
  return {
    id: row.id,
    userId: row.user_id,
    authenticator: row.authenticator,
    issuer: row.issuer,
    subject: row.subject,
    display: row.display ?? undefined,
    createdAt: new Date(row.created_at),
  };
}
