import type { Logger } from 'pino';
import { mayAccess } from '../../identity/rbac/access-check.ts';
import type { Authorizer } from '../../identity/rbac/authorizer.ts';
import type { Login } from '../../identity/sessions/login-sessions.ts';
import type { User } from '../../identity/users/user-store.ts';
import { actAs } from '../../platform/audit/actor.ts';
import type { SpawnerConfig } from '../../platform/config/config.ts';
import { HubError } from '../../platform/errors.ts';
import type { AuditTrail } from '../../platform/store/audit-trail.ts';
import { type SettingStore, settingOfUser } from '../../platform/store/setting-store.ts';
import { text } from '../../platform/texts/text.ts';
import { serverAuditEvent } from './server-row-store.ts';
import type { ServerStore } from './server-store.ts';
import type { UserServers } from './user-servers.ts';

/** Whether a login starts the default server of its user, and that start. */
export interface StartAtLogin {
  of(user: Pick<User, 'id'>): Promise<StartChoice>;
  /** Throws `conflict` where `Spawner.start_at_login` leaves no choice. */
  choose(user: Pick<User, 'id' | 'name'>, isOn: boolean): Promise<void>;
  /**
   * Begins to start the stopped default server of a user who has just logged in and may start it, where that is chosen.
   * Resolves when that is begun or refused, and never rejects: no login depends on it.
   */
  begin(login: Login): Promise<void>;
}

export interface StartChoice {
  readonly isOn: boolean;
  readonly mayChoose: boolean;
}

export function createStartAtLogin(deps: {
  readonly setting: SpawnerConfig['start_at_login'];
  readonly settings: Pick<SettingStore, 'find' | 'set' | 'take'>;
  readonly audit: Pick<AuditTrail, 'recordAlone'>;
  readonly authorizer: Pick<Authorizer, 'scopesOfOwner' | 'membershipFor'>;
  readonly serverStore: Pick<ServerStore, 'find'>;
  readonly servers: Pick<UserServers, 'isConfigured' | 'start' | 'launchedName'>;
  readonly log: Logger;
}): StartAtLogin {
  const { settings, authorizer, serverStore, servers, log } = deps;
  const { launchedName: serverName } = servers;
  const setting = servers.isConfigured && deps.setting;
  const mayChoose = setting === 'choice';
  const chosen = 'yes';
  const keyOf = ({ id }: Pick<User, 'id'>) => settingOfUser(id, 'start-at-login');

  const isOn = async (user: Pick<User, 'id'>): Promise<boolean> =>
    mayChoose ? (await settings.find(keyOf(user))) === chosen : setting === true;

  async function start({ user }: Login): Promise<void> {
    if (!(await isOn(user))) return;
    const scopes = await authorizer.scopesOfOwner({ kind: 'user', name: user.name });
    const membership = await authorizer.membershipFor(scopes);
    const resource = { kind: 'server', userName: user.name, serverName } as const;
    if (!mayAccess(scopes, 'start:servers', resource, membership)) return;
    const server = await serverStore.find(user.name, serverName);
    if ((server?.state ?? 'stopped') !== 'stopped') return;
    await servers.start({ user, serverName, mayStartInMaintenance: false });
  }

  return {
    of: async (user) => ({ isOn: await isOn(user), mayChoose }),

    async choose(user, wanted) {
      if (!mayChoose) {
        throw new HubError(
          'conflict',
          text`Whether a login starts a server is not for users to choose.`,
          {
            hint: text`Set Spawner.start_at_login to "choice" to let them.`,
          },
        );
      }
      await (wanted ? settings.set(keyOf(user), chosen) : settings.take(keyOf(user), chosen));
      const event = serverAuditEvent('server.start_at_login', {
        user_name: user.name,
        name: serverName,
      });
      await deps.audit.recordAlone({ ...event, detail: { starts: wanted } });
    },

    async begin(login) {
      const { user, session } = login;
      const { sessionId, address } = session;
      try {
        await actAs({ kind: 'user', name: user.name, sessionId, address }, () => start(login));
      } catch (error) {
        log.warn({ err: error, user: user.name }, 'server could not be started at login');
      }
    },
  };
}
