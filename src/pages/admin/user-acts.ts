import type { Accounts } from '../../accounts/accounts.ts';
import type { ActingOnUsers } from '../../accounts/acting-on-users.ts';
import type { GroupMembers } from '../../accounts/group-members.ts';
import { mayStartInMaintenance } from '../../servers/maintenance.ts';
import type { ServerStore } from '../../servers/server-store.ts';
import type { UserServers } from '../../servers/user-servers.ts';
import { message, type Phrase, type Text, text } from '../../texts/text.ts';
import type { UserStore } from '../../users/user-store.ts';
import type { Admin } from './admin-context.ts';

export interface UserActDeps {
  readonly users: Pick<UserStore, 'getByName'>;
  readonly accounts: Pick<Accounts, 'delete'>;
  readonly acting: Pick<ActingOnUsers, 'requireMayActOn'>;
  readonly members: Pick<GroupMembers, 'add'>;
  readonly serverStore: Pick<ServerStore, 'find' | 'listOfUser'>;
  readonly servers: Pick<UserServers, 'start' | 'stop' | 'isConfigured'>;
}

/** Something that is done to one user, or to many. */
export interface UserAct {
  readonly name: 'start' | 'stop' | 'group' | 'delete';
  /** In the list of what can be done. */
  readonly label: Phrase;
  /** A scope without which it is of no use to anyone. */
  readonly scope: string;
  readonly question: (count: number) => Text;
  readonly consequence: Phrase;
  /** Of the button that does it to so many users. */
  readonly button: (count: number) => Phrase;
  /** What has happened, for so many users. */
  readonly told: (count: number) => Text;
  /** `always`: also for those that are ticked; `typed`: and their number must be typed, or the name of one. */
  readonly asks: 'for all' | 'always' | 'typed';
  /** Throws where the administrator may not do it to this user, and when the user is gone. */
  run(who: Admin, userName: string, options: { readonly group: string }): Promise<void>;
  /** The same for several, all or none, where that costs less than one after the other. */
  readonly runTogether?: (
    who: Admin,
    userNames: readonly string[],
    options: { readonly group: string },
  ) => Promise<void>;
}

export function createUserActs(deps: UserActDeps): readonly UserAct[] {
  const { users, acting, serverStore, servers } = deps;

  async function addToGroup(
    who: Admin,
    userNames: readonly string[],
    { group }: { readonly group: string },
  ): Promise<void> {
    who.require('groups', { kind: 'group', name: group });
    // A user that is gone is refused by its name.
    await deps.members.add(who.caller, group, userNames);
  }

  return [
    {
      name: 'start',
      label: text`Start the servers of`,
      scope: 'start:servers',
      question: (count) =>
        message(
          '{count, plural, one {Start the servers of # user?} other {Start the servers of # users?}}',
          { count },
        ),
      consequence: text`They start with the options of their last start. Running servers keep running.`,
      button: () => text`Start servers`,
      told: (count) =>
        message(
          '{count, plural, one {The servers of # user are starting or run already.} other {The servers of # users are starting or run already.}}',
          { count },
        ),
      asks: 'for all',
      async run(who, userName) {
        const user = await users.getByName(userName);
        who.require('start:servers', { kind: 'server', userName, serverName: '' });
        await acting.requireMayActOn(who.caller, user, ['start:servers'], '');
        const server = await serverStore.find(userName, '');
        if (server?.state === 'running' || server?.state === 'starting') return;
        const mayStart = mayStartInMaintenance(who.caller);
        await servers.start({ user, serverName: '', mayStartInMaintenance: mayStart });
      },
    },
    {
      name: 'stop',
      label: text`Stop all servers of`,
      scope: 'delete:servers',
      question: (count) =>
        message(
          '{count, plural, one {Stop all servers of # user?} other {Stop all servers of # users?}}',
          { count },
        ),
      consequence: text`What is not saved in them is lost.`,
      button: () => text`Stop servers`,
      told: (count) =>
        message(
          '{count, plural, one {All servers of # user are stopped.} other {All servers of # users are stopped.}}',
          { count },
        ),
      asks: 'for all',
      async run(who, userName) {
        const user = await users.getByName(userName);
        for (const { name, state } of await serverStore.listOfUser(userName)) {
          if (state === 'stopped' || state === 'stopping') continue;
          who.require('delete:servers', { kind: 'server', userName, serverName: name });
          await acting.requireMayActOn(who.caller, user, ['delete:servers'], name);
          await servers.stop(userName, name, { kind: 'user', name: who.login.user.name });
        }
      },
    },
    {
      name: 'group',
      label: text`Add to a group`,
      scope: 'groups',
      question: (count) =>
        message('{count, plural, one {Add # user to a group?} other {Add # users to a group?}}', {
          count,
        }),
      consequence: text`They may do at once what the roles of the group allow.`,
      button: () => text`Add to group`,
      told: (count) =>
        message(
          '{count, plural, one {# user added to the group.} other {# users added to the group.}}',
          { count },
        ),
      asks: 'always',
      run: (who, userName, options) => addToGroup(who, [userName], options),
      runTogether: addToGroup,
    },
    {
      name: 'delete',
      label: text`Delete`,
      scope: 'delete:users',
      question: (count) =>
        message('{count, plural, one {Delete # user?} other {Delete # users?}}', { count }),
      consequence: text`Their servers are stopped, their logins end, and all their tokens stop working. This cannot be undone. Their files stay where they are.`,
      button: (count) =>
        message('{count, plural, one {Delete user} other {Delete users}}', { count }),
      told: (count) =>
        message('{count, plural, one {# user deleted.} other {# users deleted.}}', { count }),
      asks: 'typed',
      async run(who, userName) {
        who.require('delete:users', { kind: 'user', name: userName });
        await deps.accounts.delete(who.caller, userName);
      },
    },
  ];
}
