import { hashSecret } from '../../platform/crypto/hash.ts';
import { HubError } from '../../platform/errors.ts';
import { text } from '../../platform/texts/text.ts';
import type { AccountPasswords, SetPasswordOptions } from '../authentication/account-passwords.ts';
import type { Caller } from '../rbac/access-check.ts';
import type { Invitation, InvitationPurpose, InvitationStore } from '../users/invitation-store.ts';
import type { PasswordCredentialStore } from '../users/password-credential-store.ts';
import type { User, UserStore } from '../users/user-store.ts';
import type { ActingOnUsers } from './acting-on-users.ts';

/** A new link, shown this once. */
export interface NewInvitation {
  readonly user: User;
  readonly purpose: InvitationPurpose;
  /** The whole link, with its secret. */
  readonly url: string;
  readonly expiresAt: Date;
}

/** Links with which users choose the first password of their account, or a new one. */
export interface Invitations {
  /** Whether accounts have a password here. */
  readonly isUsed: boolean;
  /**
   * Makes a link: an invitation for an account without password, else one that resets it. An
   * earlier link of the user ends. Throws `forbidden` for an account that may do more than the
   * caller, and `bad_request` where accounts have no password.
   */
  create(caller: Caller, userName: string): Promise<NewInvitation>;
  /** Ends the unused links of a user; tells how many. */
  revoke(caller: Caller, userName: string): Promise<number>;
  /** What a link is for, without using it up; undefined for one that does not work (any more). */
  find(
    secret: string,
  ): Promise<{ readonly invitation: Invitation; readonly user: User } | undefined>;
  /** Uses a link up. Throws `bad_request` for a bad password, which leaves the link as it is. */
  accept(
    secret: string,
    password: string,
    options?: Pick<SetPasswordOptions, 'endsApiTokens'>,
  ): Promise<User>;
}

/** How long a link works, by what it is for. */
export const invitationLifetimeSeconds = {
  invitation: 7 * 86_400,
  password_reset: 86_400,
} as const satisfies Record<InvitationPurpose, number>;

export function createInvitations(deps: {
  readonly invitationStore: InvitationStore;
  readonly users: Pick<UserStore, 'getByName' | 'findById'>;
  readonly credentials: Pick<PasswordCredentialStore, 'findPasswordHash'>;
  readonly passwords: AccountPasswords;
  readonly acting: Pick<ActingOnUsers, 'requireMayTakeOver'>;
  /** URL of the page that such a link opens. */
  readonly pageUrl: string;
  readonly now: () => number;
}): Invitations {
  const { invitationStore: store, users, passwords } = deps;
  const now = () => new Date(deps.now());

  async function userFor(caller: Caller, userName: string): Promise<User> {
    const user = await users.getByName(userName);
    await deps.acting.requireMayTakeOver(caller, user);
    return user;
  }

  async function find(secret: string) {
    const invitation = await store.findInvitation(hashSecret(secret), now());
    const user = invitation && (await users.findById(invitation.userId));
    const isShutOut = user === undefined || user.isSuspended;
    return invitation === undefined || isShutOut ? undefined : { invitation, user };
  }

  return {
    get isUsed() {
      return passwords.isUsed;
    },
    find,

    async create(caller, userName) {
      if (!passwords.isUsed) {
        throw new HubError('bad_request', text`Accounts have no password on this hub.`);
      }
      const user = await userFor(caller, userName);
      const credential = await deps.credentials.findPasswordHash(user.name);
      const purpose = credential === undefined ? 'invitation' : 'password_reset';
      const expiresAt = new Date(now().getTime() + invitationLifetimeSeconds[purpose] * 1000);
      const createdBy = caller.owner.name;
      const { secret } = await store.create({ userId: user.id, purpose, createdBy, expiresAt });
      return { user, purpose, url: `${deps.pageUrl}?secret=${secret}`, expiresAt };
    },

    async revoke(caller, userName) {
      const user = await userFor(caller, userName);
      const listed = await store.listForUser(user.id, now());
      const open = listed.filter(({ state }) => state === 'sent');
      for (const { id } of open) await store.delete(id);
      return open.length;
    },

    async accept(secret, password, options) {
      const found = await find(secret);
      if (found === undefined) throw usedUp();
      const problem = passwords.problemWith(password, found.user.name);
      if (problem !== undefined) throw new HubError('bad_request', problem);
      if ((await store.takeInvitation(hashSecret(secret), now())) === undefined) throw usedUp();
      await passwords.set(found.user, password, options);
      return found.user;
    },
  };
}

/** The answer to a link that does not work, which tells nothing about why. */
export function usedUp(): HubError {
  return new HubError('not_found', text`This link has expired or was already used.`, {
    hint: text`It may have been used, or be too old. Ask an administrator for a new one.`,
  });
}
