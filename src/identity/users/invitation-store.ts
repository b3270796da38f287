import { randomUUID } from 'node:crypto';
import type { Kysely } from 'kysely';
import type { AuditAction } from '../../platform/audit/actions.ts';
import { hashSecret } from '../../platform/crypto/hash.ts';
import { randomSecret } from '../../platform/crypto/random.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import { textsOf } from '../../platform/store/queries.ts';
import type { Row, Tables } from '../../platform/store/tables.ts';
import { recordOfUser, withoutUser } from '../../platform/store/user-name-of.ts';

/** What the holder of a link may do: set the first password, or a new one. */
export type InvitationPurpose = 'invitation' | 'password_reset';

/** A link that was sent to a user; its bearer may act as them once. */
export interface Invitation {
  readonly id: string;
  readonly purpose: InvitationPurpose;
  readonly userId: string;
  /** Name of who made it. */
  readonly createdBy: string;
  readonly createdAt: Date;
  readonly expiresAt: Date;
}

/** `sent`: it can be used; `expired`: it was not used in time. */
export type InvitationState = 'sent' | 'used' | 'expired';

/** A link and what has become of it. */
export interface ListedInvitation extends Invitation {
  readonly state: InvitationState;
}

export interface InvitationStore {
  /**
   * Creates a link and gives its secret, which is stored as a hash only and shown this once. An
   * earlier link of the same user and purpose ends. Throws `not_found` for the user.
   */
  create(options: {
    readonly userId: string;
    readonly purpose: InvitationPurpose;
    readonly createdBy: string;
    readonly expiresAt: Date;
  }): Promise<{ invitation: Invitation; secret: string }>;
  /** Does not use the link up, for the page that it opens. */
  findInvitation(secretHash: string, now: Date): Promise<Invitation | undefined>;
  /** Takes the link; of several who try at once, one gets it. */
  takeInvitation(secretHash: string, now: Date): Promise<Invitation | undefined>;
  /** The last links of a user, one for each purpose, unless they ended long ago. */
  listForUser(userId: string, now: Date): Promise<readonly ListedInvitation[]>;
  /** As `listForUser` for many, by the id of the user; users without an invitation are not in it. */
  listByUser(
    userIds: readonly string[],
    now: Date,
  ): Promise<ReadonlyMap<string, readonly ListedInvitation[]>>;
  delete(id: string): Promise<boolean>;
  /** Deletes what could no longer be used 30 days ago; tells how many. */
  deleteExpired(now: Date): Promise<number>;
}

/** How long it is told what has become of a link. */
const keptMs = 30 * 86_400_000;

export function createInvitationStore(database: HubDatabase): InvitationStore {
  const { kysely } = database;
  const record = (
    transaction: Kysely<Tables>,
    action: AuditAction,
    { user_id, purpose }: Row<'invitations'>,
  ) => recordOfUser(database, transaction, user_id, { action, detail: { purpose } });
  async function listByUser(userIds: readonly string[], now: Date) {
    const rows = await kysely
      .selectFrom('invitations')
      .selectAll()
      .where('user_id', 'in', textsOf(userIds, database))
      .orderBy('created_at')
      .execute();
    return Map.groupBy(
      rows.map((row) => ({ ...toInvitation(row), state: stateOf(row, now) })),
      ({ userId }) => userId,
    );
  }

  return {
    async create({ userId, purpose, createdBy, expiresAt }) {
      const secret = randomSecret();
      const row: Row<'invitations'> = {
        id: randomUUID(),
        secret_hash: hashSecret(secret),
        purpose,
        user_id: userId,
        created_by: createdBy,
        created_at: Date.now(),
        expires_at: expiresAt.getTime(),
        used_at: null,
      };
      try {
        await database.transaction(async (transaction) => {
          await transaction
            .deleteFrom('invitations')
            .where('user_id', '=', userId)
            .where('purpose', '=', purpose)
            .execute();
          await transaction.insertInto('invitations').values(row).execute();
          await record(transaction, 'invitation.create', row);
        });
      } catch (error) {
        throw withoutUser(error);
      }
      return { invitation: toInvitation(row), secret };
    },

    async findInvitation(secretHash, now) {
      const row = await kysely
        .selectFrom('invitations')
        .selectAll()
        .where('secret_hash', '=', secretHash)
        .executeTakeFirst();
      return row && stateOf(row, now) === 'sent' ? toInvitation(row) : undefined;
    },

    async takeInvitation(secretHash, now) {
      return database.transaction(async (transaction) => {
        const row = await transaction
          .updateTable('invitations')
          .set({ used_at: now.getTime() })
          .where('secret_hash', '=', secretHash)
          .where('used_at', 'is', null)
          .where('expires_at', '>', now.getTime())
          .returningAll()
          .executeTakeFirst();
        if (row !== undefined) await record(transaction, 'invitation.accept', row);
        return row && toInvitation(row);
      });
    },

    listByUser,

    async listForUser(userId, now) {
      return (await listByUser([userId], now)).get(userId) ?? [];
    },

    async delete(id) {
      return database.transaction(async (transaction) => {
        const row = await transaction
          .deleteFrom('invitations')
          .where('id', '=', id)
          .returningAll()
          .executeTakeFirst();
        if (row !== undefined) await record(transaction, 'invitation.revoke', row);
        return row !== undefined;
      });
    },

    async deleteExpired(now) {
      const endedAt = now.getTime() - keptMs;
      const { numDeletedRows } = await kysely
        .deleteFrom('invitations')
        .where((where) =>
          where.or([where('expires_at', '<=', endedAt), where('used_at', '<=', endedAt)]),
        )
        .executeTakeFirst();
      return Number(numDeletedRows);
    },
  };
}

/** Ends the unused links of a user, in the transaction of what makes them pointless; tells how many. */
export async function endLinksOf(transaction: Kysely<Tables>, userId: string): Promise<number> {
  const { numDeletedRows } = await transaction
    .deleteFrom('invitations')
    .where('user_id', '=', userId)
    .where('used_at', 'is', null)
    .executeTakeFirst();
  return Number(numDeletedRows);
}

function stateOf(
  { used_at: usedAt, expires_at: expiresAt }: Row<'invitations'>,
  now: Date,
): InvitationState {
  if (usedAt !== null) return 'used';
  return expiresAt > now.getTime() ? 'sent' : 'expired';
}

function toInvitation(row: Row<'invitations'>): Invitation {
  return {
    id: row.id,
    purpose: row.purpose as InvitationPurpose,
    userId: row.user_id,
    createdBy: row.created_by,
    createdAt: new Date(row.created_at),
    expiresAt: new Date(row.expires_at),
  };
}
