import type { Accounts } from '../../accounts/accounts.ts';
import type { ActingOnUsers } from '../../accounts/acting-on-users.ts';
import type { GroupMembers } from '../../accounts/group-members.ts';
import { mayStartInMaintenance } from '../../servers/maintenance.ts';
import type { ServerStore } from '../../servers/server-store.ts';
import type { UserServers } from '../../servers/user-servers.ts';
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
  readonly label: string;
  /** A scope without which it is of no use to anyone. */
  readonly scope: string;
  readonly question: (count: string) => string;
  readonly consequence: string;
  /** Of the button that does it. */
  readonly button: string;
  /** What has happened, for so many users. */
  readonly told: (count: string) => string;
  /** `always`: also for those that are ticked; `typed`: and their number must be typed. */
  readonly asks: 'for all' | 'always' | 'typed';
  /** Throws where the administrator may not do it to this user, and when the user is gone. */
  run(who: Admin, userName: string, options: { readonly group: string }): Promise<void>;
}

export function createUserActs(deps: UserActDeps): readonly UserAct[] {
  const { users, acting, serverStore, servers } = deps;

  return [
    {
      name: 'start',
      label: 'Start the servers of',
      scope: 'start:servers',
      question: (count) => `Start the servers of ${count}?`,
      consequence: 'They start with the options of their last start. Those that run go on.',
      button: 'Start servers',
      told: (count) => `The servers of ${count} are starting or run already.`,
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
      label: 'Stop all servers of',
      scope: 'delete:servers',
      question: (count) => `Stop all servers of ${count}?`,
      consequence: 'What is not saved in them is lost.',
      button: 'Stop servers',
      told: (count) => `No server of ${count} goes on running.`,
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
      label: 'Add to a group',
      scope: 'groups',
      question: (count) => `Add ${count} to a group?`,
      consequence: 'They may do at once what the roles of the group allow.',
      button: 'Add to group',
      told: (count) => `${count} added to the group.`,
      asks: 'always',
      async run(who, userName, { group }) {
        who.require('groups', { kind: 'group', name: group });
        // A user that is gone is refused by its name.
        await deps.members.add(who.caller, group, [userName]);
      },
    },
    {
      name: 'delete',
      label: 'Delete',
      scope: 'delete:users',
      question: (count) => `Delete ${count}?`,
      consequence:
        'Their servers are stopped, their logins end, and all their tokens stop working. This cannot be undone. Their files stay where they are.',
      button: 'Delete users',
      told: (count) => `${count} deleted.`,
      asks: 'typed',
      async run(who, userName) {
        who.require('delete:users', { kind: 'user', name: userName });
        await deps.accounts.delete(who.caller, userName);
      },
    },
  ];
}
