import { randomUUID } from 'node:crypto';
import { HubError } from '../../platform/errors.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import { isUniqueViolation } from '../../platform/store/storage-error.ts';
import { text } from '../../platform/texts/text.ts';
import type { IdentityKey } from '../users/identity-store.ts';
import { validateUserName } from '../users/user-name.ts';
import type { User } from '../users/user-store.ts';

/** Makes accounts at a first login. */
export interface AccountStore {
  /**
   * Creates a user together with the identity that logged in, both or neither. Throws `conflict`
   * when the name or the identity has got an account in the meantime.
   */
  create(account: {
    readonly name: string;
    readonly isAdmin: boolean;
    readonly identity: IdentityKey & { readonly display?: string };
  }): Promise<{ readonly user: User; readonly identityId: string }>;
}

export function createAccountStore(
  database: Pick<HubDatabase, 'transaction' | 'announceChange' | 'audit'>,
): AccountStore {
  return {
    async create({ name, isAdmin, identity }) {
      const createdAt = new Date();
      const user: User = {
        id: randomUUID(),
        name: validateUserName(name),
        isAdmin,
        isInvited: false,
        isSuspended: false,
        createdAt,
        lastActivityAt: undefined,
        systemAccount: undefined,
        madeFor: undefined,
      };
      const identityId = randomUUID();
      try {
        await database.transaction(async (transaction) => {
          await transaction
            .insertInto('users')
            .values({
              id: user.id,
              name: user.name,
              admin: Number(isAdmin),
              invited: 0,
              created_at: createdAt.getTime(),
              last_activity_at: null,
            })
            .execute();
          await transaction
            .insertInto('identities')
            .values({
              id: identityId,
              user_id: user.id,
              authenticator: identity.authenticator,
              issuer: identity.issuer,
              subject: identity.subject,
              display: identity.display ?? null,
              created_at: createdAt.getTime(),
            })
            .execute();
          await database.audit.record(transaction, {
            action: 'user.create',
            target: { kind: 'user', name: user.name },
            detail: { authenticator: identity.authenticator, ...(isAdmin && { admin: true }) },
          });
        });
      } catch (error) {
        if (!isUniqueViolation(error)) throw error;
        throw new HubError('conflict', text`This account has just been made.`, { cause: error });
      }
      database.announceChange({ kind: 'user_added' });
      return { user, identityId };
    },
  };
}
