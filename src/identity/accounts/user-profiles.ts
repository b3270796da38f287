import { HubError } from '../../platform/errors.ts';
import { type Phrase, text } from '../../platform/texts/text.ts';
import type { Authenticators } from '../authentication/create-authenticators.ts';
import { loginLabels } from '../authentication/login-labels.ts';
import type { Caller } from '../rbac/access-check.ts';
import type { IdentityStore } from '../users/identity-store.ts';
import { changedInfo, type InfoChange, type UserInfo } from '../users/user-info.ts';
import type { UserInfoStore } from '../users/user-info-store.ts';
import type { User } from '../users/user-store.ts';
import type { ActingOnUsers } from './acting-on-users.ts';

/** Display names, e-mail addresses and pictures, and who may change them. */
export interface UserProfiles {
  read(user: Pick<User, 'id'>): Promise<UserProfile>;
  /**
   * Throws `forbidden` as for taking the account over, `bad_request` for what cannot be kept, and `conflict`
   * where a login provider tells it.
   */
  change(caller: Caller, user: User, change: InfoChange): Promise<void>;
  /**
   * What users choose for themselves; not their e-mail address, by which other programs may know them. Throws
   * as `change`.
   */
  changeOwn(user: User, change: Pick<InfoChange, 'displayName'>): Promise<void>;
}

export interface UserProfile {
  readonly info: UserInfo;
  /** How the login page calls the authenticator that tells it at each login; undefined: it is kept here. */
  readonly providedBy: Phrase | undefined;
  /** The picture, where pages may load it from its origin. */
  readonly shownPictureUrl: string | undefined;
}

export function createUserProfiles(deps: {
  readonly userInfo: UserInfoStore;
  readonly identities: Pick<IdentityStore, 'listForUser'>;
  readonly authenticators: Pick<Authenticators, 'find'>;
  readonly acting: Pick<ActingOnUsers, 'requireMayTakeOver'>;
  /** `Hub.picture_origins`. */
  readonly pictureOrigins: readonly string[];
}): UserProfiles {
  const { userInfo: store, identities, authenticators } = deps;
  const origins = new Set(deps.pictureOrigins.map((origin) => new URL(origin).origin));

  async function read({ id }: Pick<User, 'id'>): Promise<UserProfile> {
    const info = await store.of(id);
    const { authenticator, pictureUrl } = info;
    const isShown = pictureUrl !== undefined && origins.has(new URL(pictureUrl).origin);
    const shownPictureUrl = isShown ? pictureUrl : undefined;
    const via = authenticator === undefined ? undefined : authenticators.find(authenticator);
    if (via === undefined) return { info, providedBy: undefined, shownPictureUrl };
    // Once the link is ended, no login will ever tell it again.
    const linked = await identities.listForUser(id);
    const isLinked = linked.some((identity) => identity.authenticator === authenticator);
    const providedBy = isLinked ? loginLabels(via.authenticator.login.label) : undefined;
    return { info, providedBy, shownPictureUrl };
  }

  async function write(user: User, change: InfoChange): Promise<void> {
    const { info, providedBy } = await read(user);
    if (providedBy !== undefined) {
      throw new HubError('conflict', text`“${providedBy}” tells who this user is, at each login.`, {
        hint: text`Change it there.`,
      });
    }
    await store.change(user, changedInfo(info, change));
  }

  return {
    read,
    async change(caller, user, change) {
      await deps.acting.requireMayTakeOver(caller, user);
      await write(user, change);
    },
    changeOwn: (user, { displayName }) => write(user, { displayName }),
  };
}
