import type { ActingOnUsers } from '../../identity/accounts/acting-on-users.ts';
import type { FailureLimit } from '../../identity/oauth/clients/failure-limit.ts';
import { type Caller, mayAccess } from '../../identity/rbac/access-check.ts';
import type { Authorizer } from '../../identity/rbac/authorizer.ts';
import type { GroupStore } from '../../identity/users/group-store.ts';
import { normaliseUserName } from '../../identity/users/user-name.ts';
import type { User, UserStore } from '../../identity/users/user-store.ts';
import { HubError } from '../../platform/errors.ts';
import type { ListPage, OffsetPageAsked } from '../../platform/store/page-edge.ts';
import { text } from '../../platform/texts/text.ts';
import type { Server } from '../servers/server.ts';
import type { ServerStore } from '../servers/server-store.ts';
import type { ListedShare, Share, ShareCode, ShareRecipient } from './share.ts';
import type { ShareCodeStore } from './share-code-store.ts';
import type { RecipientId } from './share-rows-store.ts';
import { readShareScopes, requireMayShare } from './share-scopes.ts';
import type { ShareStore } from './share-store.ts';

/** Shortest, longest and usual life of a code, in seconds. */
export const codeLifetimeSeconds = { min: 60, max: 31_536_000, usual: 86_400 } as const;

/**
 * Sharing of servers. Whether a caller may share a server at all has been found out before; here it is about how much
 * they may give away, and to whom.
 */
export interface Sharing {
  /** A server that can be shared: the default one is there as soon as its user is. Throws `not_found`. */
  serverOf(ownerName: string, serverName: string): Promise<Server>;
  /**
   * Adds scopes to what a user or group may do with a server. Throws `bad_request` for scopes that are not of this
   * server and for a recipient that is not there, `forbidden` for more than the caller holds and for a recipient the
   * caller may not name, and `conflict` for too many shares.
   */
  grant(
    caller: Caller,
    server: Server,
    recipient: ShareRecipient,
    scopes: readonly string[],
  ): Promise<Share>;
  /** Takes scopes away, or all without any. What is left; undefined for nothing, also for an unknown recipient. */
  revoke(
    server: Server,
    recipient: ShareRecipient,
    scopes: readonly string[],
  ): Promise<Share | undefined>;
  revokeAll(server: Server): Promise<void>;
  /** Throws `not_found`. */
  sharesOfServer(
    ownerName: string,
    serverName: string,
    page: OffsetPageAsked,
  ): Promise<ListPage<ListedShare>>;
  /** Of all servers of a user. Throws `not_found`. */
  sharesOfOwner(ownerName: string, page: OffsetPageAsked): Promise<ListPage<ListedShare>>;
  /** What is shared with a user, also by groups, or with a group. Throws `not_found`. */
  sharedWith(recipient: ShareRecipient, page: OffsetPageAsked): Promise<ListPage<ListedShare>>;
  /** As `sharedWith`, without the user's own servers that are shared with a group of theirs. */
  ofOthersSharedWith(user: User, page: OffsetPageAsked): Promise<ListPage<ListedShare>>;
  /** What is shared with the recipient itself. Throws `not_found`. */
  shareWith(recipient: ShareRecipient, ownerName: string, serverName: string): Promise<Share>;
  /** Ends that. Throws `not_found`. */
  leave(recipient: ShareRecipient, ownerName: string, serverName: string): Promise<void>;

  /** Throws as `grant`. */
  createCode(
    caller: Caller,
    server: Server,
    options: { readonly scopes: readonly string[]; readonly expiresInSeconds: number },
  ): Promise<{ readonly shareCode: ShareCode; readonly code: string }>;
  /** Throws `not_found`. */
  codesOfServer(
    ownerName: string,
    serverName: string,
    page: Parameters<ShareCodeStore['list']>[1],
  ): ReturnType<ShareCodeStore['list']>;
  /** Throws `not_found`. */
  codesOfOwner(
    ownerName: string,
    page: Parameters<ShareCodeStore['list']>[1],
  ): ReturnType<ShareCodeStore['list']>;
  /** Throws `not_found`. */
  deleteCode(
    server: Server,
    which: { readonly id: string } | { readonly code: string },
  ): Promise<void>;
  deleteCodes(server: Server): Promise<void>;
  /**
   * What a code is for. Throws `not_found` for one that does not work (any more), `forbidden` for one of the user's own
   * server, and `too_many_requests` for a user and address that tried too many.
   */
  findCode(code: string, user: User, address: string): Promise<ShareCode>;
  /** Gives the user what the code is for. Throws as `findCode`, and `conflict` for too many shares. */
  acceptCode(code: string, user: User, address: string): Promise<ShareCode>;
}

/** No code is longer than this; what is may be anything. */
const maxCodeLength = 200;

export function createSharing(deps: {
  readonly shares: ShareStore;
  readonly shareCodes: ShareCodeStore;
  readonly serverStore: Pick<ServerStore, 'find' | 'ensure'>;
  readonly users: Pick<UserStore, 'findByName'>;
  readonly groups: Pick<GroupStore, 'getByName'>;
  readonly authorizer: Pick<Authorizer, 'catalogue' | 'membershipFor'>;
  readonly acting: Pick<ActingOnUsers, 'excessScopes'>;
  readonly failures: FailureLimit;
  /** Milliseconds since 1970, by a clock that all processes share. */
  readonly now: () => number;
}): Sharing {
  const { shares, shareCodes, serverStore: servers, users, authorizer, failures } = deps;

  async function userNamed(name: string): Promise<User> {
    const user = await users.findByName(name);
    if (user === undefined) throw new HubError('not_found', text`There is no such user.`);
    return user;
  }

  /** Undefined for a default server that was never used, so that a list of what belongs to it writes nothing. */
  async function findServer(owner: User, serverName: string): Promise<Server | undefined> {
    const server = await servers.find(owner.name, serverName);
    if (server === undefined && serverName !== '') {
      throw new HubError('not_found', text`There is no such server.`);
    }
    return server;
  }

  async function serverOf(ownerName: string, serverName: string): Promise<Server> {
    const owner = await userNamed(ownerName);
    return (await findServer(owner, serverName)) ?? servers.ensure(owner.id, serverName);
  }

  const none = { items: [], total: 0, isFirst: true, isLast: true };

  async function findRecipient({ kind, name }: ShareRecipient): Promise<RecipientId | undefined> {
    if (kind === 'user') {
      const user = await users.findByName(name);
      return user && { kind, id: user.id };
    }
    try {
      return { kind, id: (await deps.groups.getByName(name)).id };
    } catch (error) {
      if (error instanceof HubError && error.code === 'not_found') return undefined;
      throw error;
    }
  }

  async function getRecipient(recipient: ShareRecipient): Promise<RecipientId> {
    const found = await findRecipient(recipient);
    if (found === undefined)
      throw new HubError(
        'not_found',
        recipient.kind === 'user' ? text`There is no such user.` : text`There is no such group.`,
      );
    return found;
  }

  /** Else anyone could find out by sharing whom there is. */
  async function requireMayName(caller: Caller, { kind, name }: ShareRecipient): Promise<void> {
    const scope = kind === 'user' ? 'read:users:name' : 'read:groups:name';
    const known = kind === 'user' ? normaliseUserName(name) : name.normalize('NFC');
    const membership = await authorizer.membershipFor(caller.scopes);
    if (mayAccess(caller.scopes, scope, { kind, name: known }, membership)) return;
    throw new HubError(
      'forbidden',
      kind === 'user'
        ? text`You may not share with this user.`
        : text`You may not share with this group.`,
      {
        hint: text`To name one, it takes ${scope} for it. A link can be shared without.`,
      },
    );
  }

  async function requireShare(
    recipient: ShareRecipient,
    ownerName: string,
    serverName: string,
  ): Promise<{ share: Share; id: RecipientId }> {
    const id = await findRecipient(recipient);
    const server = id && (await servers.find(ownerName, serverName));
    const share = server && (await shares.find(server.id, id));
    if (id === undefined || share === undefined) {
      throw new HubError(
        'not_found',
        recipient.kind === 'user'
          ? text`This server is not shared with this user.`
          : text`This server is not shared with this group.`,
      );
    }
    return { share, id };
  }

  async function findCode(code: string, user: User, address: string): Promise<ShareCode> {
    const found = await failures.attempt(
      `${user.id} ${address}`,
      async () => (code.length > maxCodeLength ? undefined : shareCodes.find(code)),
      (retryAfterSeconds) =>
        new HubError('too_many_requests', text`Too many links that do not work.`, {
          hint: text`Wait a moment, then open the link again.`,
          retryAfterSeconds,
        }),
    );
    if (found === undefined) throw deadCode();
    if (found.server.userId === user.id) {
      throw new HubError('forbidden', text`This is your own server; you need no link to it.`);
    }
    return found;
  }

  return {
    serverOf,
    findCode,

    async grant(caller, server, recipient, scopes) {
      const names = readShareScopes(scopes, server, authorizer.catalogue);
      await requireMayShare(caller, server, names, deps.acting);
      await requireMayName(caller, recipient);
      const found = await findRecipient(recipient);
      if (found === undefined) {
        throw new HubError(
          'bad_request',
          recipient.kind === 'user' ? text`There is no such user.` : text`There is no such group.`,
        );
      }
      if (found.kind === 'user' && found.id === server.userId) {
        throw new HubError('bad_request', text`A server cannot be shared with its own user.`);
      }
      await shares.grant(server, found, names);
      const share = await shares.find(server.id, found);
      if (share === undefined) throw new HubError('conflict', text`The share was ended meanwhile.`);
      return share;
    },

    async revoke(server, recipient, scopes) {
      const names =
        scopes.length === 0 ? undefined : readShareScopes(scopes, server, authorizer.catalogue);
      const found = await findRecipient(recipient);
      if (found === undefined || !(await shares.revoke(server, found, names))) return undefined;
      return shares.find(server.id, found);
    },

    revokeAll: ({ id }) => shares.revokeAll(id),

    async sharesOfServer(ownerName, serverName, page) {
      const server = await findServer(await userNamed(ownerName), serverName);
      return server === undefined
        ? none
        : shares.list({ kind: 'server', serverId: server.id }, page);
    },

    async sharesOfOwner(ownerName, page) {
      return shares.list({ kind: 'owner', userId: (await userNamed(ownerName)).id }, page);
    },

    async sharedWith(recipient, page) {
      const { kind, id } = await getRecipient(recipient);
      return shares.list(
        kind === 'user'
          ? { kind: 'receiving_user', userId: id, onlyOfOthers: false }
          : { kind: 'receiving_group', groupId: id },
        page,
      );
    },

    ofOthersSharedWith: ({ id }, page) =>
      shares.list({ kind: 'receiving_user', userId: id, onlyOfOthers: true }, page),

    async shareWith(recipient, ownerName, serverName) {
      return (await requireShare(recipient, ownerName, serverName)).share;
    },

    async leave(recipient, ownerName, serverName) {
      const { share, id } = await requireShare(recipient, ownerName, serverName);
      await shares.revoke(share.server, id);
    },

    async createCode(caller, server, { scopes, expiresInSeconds }) {
      const scopeNames = readShareScopes(scopes, server, authorizer.catalogue);
      await requireMayShare(caller, server, scopeNames, deps.acting);
      const expiresAt = new Date(deps.now() + expiresInSeconds * 1000);
      return shareCodes.create(server, { scopeNames, expiresAt });
    },

    async codesOfServer(ownerName, serverName, page) {
      const server = await findServer(await userNamed(ownerName), serverName);
      return server === undefined
        ? none
        : shareCodes.list({ kind: 'server', serverId: server.id }, page);
    },

    async codesOfOwner(ownerName, page) {
      return shareCodes.list({ kind: 'owner', userId: (await userNamed(ownerName)).id }, page);
    },

    async deleteCode({ id }, which) {
      if (await shareCodes.delete(id, which)) return;
      throw new HubError('not_found', text`There is no such code of this server.`);
    },

    deleteCodes: ({ id }) => shareCodes.deleteAll(id),

    async acceptCode(code, user, address) {
      await findCode(code, user, address);
      const exchanged = await shareCodes.exchange(code, user.id);
      if (exchanged === undefined) throw deadCode();
      return exchanged;
    },
  };
}

function deadCode(): HubError {
  return new HubError('not_found', text`This link has expired or was already used.`, {
    hint: text`It may have expired, or was taken back. Ask for a new one.`,
  });
}
