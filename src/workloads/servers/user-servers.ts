import type { Logger } from 'pino';
import type { AccessTokenStore } from '../../identity/oauth/tokens/access-token-store.ts';
import type { Owner } from '../../identity/rbac/owner.ts';
import type { GroupStore } from '../../identity/users/group-store.ts';
import type { User, UserStore } from '../../identity/users/user-store.ts';
import type { AuditDetail } from '../../platform/audit/detail-labels.ts';
import type { Config } from '../../platform/config/config.ts';
import { spawnerOf } from '../../platform/config/profile-spawner.ts';
import { HubError } from '../../platform/errors.ts';
import type { Origins } from '../../platform/http/origins.ts';
import type { AuditTrail } from '../../platform/store/audit-trail.ts';
import { exactTime, message, text } from '../../platform/texts/text.ts';
import type { Launch } from './launch-plan.ts';
import { isServerName, type Server, serverPrefix } from './server.ts';
import type { DecideAccount } from './server-accounts.ts';
import { createServerDeletion } from './server-deletion.ts';
import type { AcceptedStart, AcceptedStop, ServerLifecycle } from './server-lifecycle.ts';
import { serverAuditEvent } from './server-row-store.ts';
import type { LaunchPlan } from './server-start.ts';
import type { ServerStore } from './server-store.ts';
import { chooseOptions, chooseProfile, requireRoom, type SpawnChoices } from './spawn-options.ts';
import type { SpawnerSet } from './spawner-set.ts';
import { comingStop, type LimitKind, limitMs } from './time-limits.ts';

/** What is asked for when a server is started. */
export interface StartRequest {
  readonly user: User;
  readonly serverName: string;
  /** Undefined uses the last choice again. */
  readonly userOptions?: Readonly<Record<string, unknown>> | undefined;
  readonly displayName?: string | undefined;
  /** Whether maintenance stops it not. */
  readonly mayStartInMaintenance: boolean;
}

/** What is asked for when a server is created without being started. */
export type NewServer = Omit<StartRequest, 'mayStartInMaintenance'>;

/** The servers of users, in the words of users: names and choices instead of plans and states. */
export interface UserServers {
  /** Whether there is anything to start. */
  readonly isConfigured: boolean;
  /** What a user may choose. */
  choicesFor(userName: string): Promise<SpawnChoices>;
  /** The server that is meant where none is named: `Hub.default_server_name`, or the default one. */
  readonly launchedName: string;
  /** Creates a named server without starting it. Throws `conflict` when it exists. */
  create(request: NewServer): Promise<Server>;
  /** Changes a stopped server. Throws `conflict` when the new name is taken. */
  change(
    userName: string,
    serverName: string,
    change: {
      readonly name?: string | undefined;
      readonly displayName?: string | undefined;
      readonly userOptions?: Readonly<Record<string, unknown>> | undefined;
    },
  ): Promise<void>;
  start(request: StartRequest): Promise<AcceptedStart>;
  /**
   * Begins to stop a server that runs and then to start it; `accepted` tells when that start is accepted, or refused.
   * Throws as `stop`, and where none may be started now.
   */
  restart(
    request: StartRequest,
    askedBy: Owner,
  ): Promise<{ readonly accepted: Promise<AcceptedStart> }>;
  /**
   * Begins to stop a server, also one that is starting; a default server that never ran has stopped.
   * Throws `forbidden` when it is the user who asks, and must log in at the provider first.
   */
  stop(userName: string, serverName: string, askedBy: Owner): Promise<AcceptedStop>;
  /** Begins to stop all servers of a user who logs out; what fails is logged. */
  stopAllOf(userName: string): Promise<void>;
  /** Stops a server when it runs and removes it with everything known of it. Throws as `stop`. */
  remove(userName: string, serverName: string, askedBy: Owner): Promise<void>;
  /** Stops a user's servers and lets none start while the account is changed. */
  withoutServersOf<Result>(user: User, work: () => Promise<Result>): Promise<Result>;
  /**
   * Removes what the spawner keeps of a user's stopped servers, for ever: the user is about to be deleted. Throws
   * `upstream_failed` when it cannot.
   */
  deleteAllOf(user: User): Promise<void>;
  /** Stops a running server of this instance that has reached a time limit; resolves when it is stopped. */
  stopAtLimit(serverId: string, reason: LimitKind): Promise<void>;
  /**
   * Counts as a use of a running server, so that it is not stopped for being idle; with `keepSeconds`, it is kept for so
   * long though it is idle, with 0 no longer. Throws `conflict` where that changes nothing, and `bad_request` beyond
   * `Spawner.keep_running_max_seconds`.
   */
  extend(userName: string, serverName: string, keepSeconds?: number): Promise<Server>;
  prefixOf(server: Pick<Server, 'userName' | 'name'>): string;
}

/** What an authenticator has to say before a server is stopped; throws where the user must log in. */
export type BeforeStop = (userName: string, askedBy: Owner) => Promise<void>;

export function createUserServers(
  deps: {
    readonly config: Pick<Config, 'Hub' | 'Spawner' | 'spawners' | 'basePath' | 'directory'>;
    readonly origins: Pick<Origins, 'of'>;
    readonly isConfigured: boolean;
    readonly users: Pick<UserStore, 'findByName'>;
    readonly serverStore: ServerStore;
    readonly lifecycle: ServerLifecycle;
    readonly spawner: Pick<SpawnerSet, 'forms' | 'delete'>;
    readonly groups: Pick<GroupStore, 'groupNamesOf'>;
    readonly planLaunch: (launch: Launch) => LaunchPlan;
    readonly accessTokens: Pick<AccessTokenStore, 'revokeByServer'>;
    readonly decideAccount: DecideAccount;
    readonly beforeStop: BeforeStop;
    /** Throws `unavailable` while no servers are started. */
    readonly requireNoMaintenance: () => Promise<void>;
    /** Throws `forbidden` where a budget of the user, or of the profile, is used up. */
    readonly requireBudget: (user: User, profile: string | undefined) => Promise<void>;
    readonly audit: Pick<AuditTrail, 'recordAlone'>;
    /** Stores that a server is used now. */
    readonly recordUse: (serverId: string) => Promise<void>;
    /** Keeps a server running for so long from now on; 0 keeps it no longer. */
    readonly keepRunning: (serverId: string, ms: number) => Promise<void>;
    /** A limit has stopped a server. */
    readonly onStopAtLimit: (reason: LimitKind) => void;
    readonly log: Logger;
  } & Parameters<typeof createServerDeletion>[0],
): UserServers {
  const { config, serverStore: store, lifecycle, spawner, accessTokens, log } = deps;
  const { Hub, Spawner: spawnerConfig, basePath } = config;
  const { profiles } = spawnerConfig;
  const deletion = createServerDeletion(deps);
  const hasLimitedProfiles = profiles.some(({ groups }) => groups !== undefined);
  const everyChoice: SpawnChoices = {
    profiles,
    forms: spawner.forms,
    spawnerOf: (profile) => spawnerOf(profile, config.spawners),
  };
  const placeholdersOf = (userName: string, serverName: string) => ({
    username: userName,
    server: serverName,
    prefix: serverPrefix(basePath, userName, serverName),
    base_url:
      deps.origins.of({ kind: 'server', userName, serverName }) +
      serverPrefix(basePath, userName, serverName),
    // Servers run in folders of their own; this is how a command names a file beside the configuration.
    directory: config.directory,
  });

  async function choicesFor(userName: string): Promise<SpawnChoices> {
    if (!hasLimitedProfiles) return everyChoice;
    const own = new Set(await deps.groups.groupNamesOf(userName));
    const open = profiles.filter(({ groups }) => groups?.some((group) => own.has(group)) ?? true);
    return { ...everyChoice, profiles: open, isClosed: open.length === 0 };
  }

  async function serverFor({ user, serverName, displayName }: NewServer): Promise<Server> {
    const existing = await store.find(user.name, serverName);
    if (serverName !== '') await requireOwnClientId(user, serverName);
    if (existing !== undefined) return existing;
    const { named_server_limit_per_user: limit } = Hub;
    if (serverName === '') return store.ensure(user.id, serverName, displayName);
    if (!Hub.allow_named_servers) throw namedServersOff();
    requireServerName(serverName);
    if (limit === 0) return store.ensure(user.id, serverName, displayName);
    const server = await store.ensureWithin(limit, user.id, serverName, displayName);
    if (server === undefined) throw tooManyServers(limit);
    return server;
  }

  /** The default server of a user `a-b` and the server `b` of a user `a` would be one OAuth client. */
  async function requireOwnClientId(user: Pick<User, 'name'>, serverName: string): Promise<void> {
    const rival = `${user.name}-${serverName}`;
    // A hyphen in the name of the user is encoded in the ids of named servers, so there is no rival.
    if (user.name.includes('-') || (await deps.users.findByName(rival)) === undefined) return;
    throw new HubError('conflict', text`This server name is not available to you; choose another.`);
  }

  async function checkedOptions(
    userName: string,
    serverName: string,
    userOptions: Readonly<Record<string, unknown>> | undefined,
    formerName = serverName,
  ): Promise<Readonly<Record<string, unknown>> | undefined> {
    if (userOptions === undefined) return undefined;
    const choices = await choicesFor(userName);
    const placeholders = placeholdersOf(userName, serverName);
    const chosen = chooseOptions(choices, userOptions, spawnerConfig, placeholders).userOptions;
    requireRoom(chosen, await store.optionsBytesBeside(userName, formerName));
    return chosen;
  }

  async function existing(userName: string, serverName: string): Promise<Server> {
    const server = await store.find(userName, serverName);
    if (server !== undefined) return server;
    if (serverName !== '' && !Hub.allow_named_servers) throw namedServersOff();
    throw new HubError('not_found', text`There is no such server.`);
  }

  /** An end takes its time and may be that of a process elsewhere: it is recorded once it has begun. */
  async function stop(server: Server, detail?: AuditDetail): Promise<AcceptedStop> {
    const accepted = await lifecycle.stop(server);
    if (server.state !== 'stopped') {
      const { userName: user_name, name } = server;
      const auditEvent = serverAuditEvent('server.stop', { user_name, name });
      await deps.audit.recordAlone(detail === undefined ? auditEvent : { ...auditEvent, detail });
    }
    return accepted;
  }

  /** That of the profile which a start would take, too. */
  function requireBudget(request: StartRequest, choices: SpawnChoices, before?: Server) {
    const { profile } = request.userOptions ?? before?.userOptions ?? {};
    return deps.requireBudget(request.user, chooseProfile(choices.profiles, profile)?.name);
  }

  /** Removes a stopped server with everything known of it. */
  async function removeStopped(server: Server): Promise<void> {
    await deletion.ofServer(server);
    await accessTokens.revokeByServer(server.id);
    await store.delete(server.id);
  }

  const userServers: UserServers = {
    isConfigured: deps.isConfigured,
    choicesFor,
    launchedName: (Hub.allow_named_servers ? Hub.default_server_name : undefined) ?? '',
    prefixOf: ({ userName, name }) => serverPrefix(basePath, userName, name),

    async create(request) {
      if ((await store.find(request.user.name, request.serverName)) !== undefined) {
        throw new HubError('conflict', text`This server exists already.`);
      }
      const userOptions = await checkedOptions(
        request.user.name,
        request.serverName,
        request.userOptions,
      );
      const server = await serverFor(request);
      if (userOptions !== undefined) await store.update(server.id, { userOptions });
      return existing(request.user.name, request.serverName);
    },

    async change(userName, serverName, { name, displayName, userOptions }) {
      const server = await existing(userName, serverName);
      if (server.state !== 'stopped') throw stopFirst();
      const isRenamed = name !== undefined && name !== server.name;
      if (isRenamed) {
        requireServerName(name);
        await requireOwnClientId({ name: userName }, name);
      }
      const checked = await checkedOptions(userName, name ?? serverName, userOptions, serverName);
      const change = { name, displayName, userOptions: checked };
      if (!(await store.changeStopped(server.id, change))) throw stopFirst();
      // What was given to the server under its old name does not pass to the new one.
      if (isRenamed) await accessTokens.revokeByServer(server.id);
    },

    async start(request) {
      // Before there is a record: a start that is refused leaves no server behind.
      if (!request.mayStartInMaintenance) await deps.requireNoMaintenance();
      if ((await deps.users.findByName(request.user.name))?.isSuspended === true) throw suspended();
      await checkedOptions(request.user.name, request.serverName, request.userOptions);
      const choices = await choicesFor(request.user.name);
      const { user, serverName } = request;
      const before = await store.find(user.name, serverName);
      if ((before?.state ?? 'stopped') === 'stopped') await requireBudget(request, choices, before);
      const account = await deps.decideAccount(user);
      const server = await serverFor(request);
      return lifecycle.start(server, () => {
        const chosen = chooseOptions(
          choices,
          request.userOptions ?? server.userOptions,
          spawnerConfig,
          placeholdersOf(user.name, server.name),
        );
        return deps.planLaunch({ user, server, account, chosen });
      });
    },

    async restart(request, askedBy) {
      // Before it is stopped, and could not be started again.
      if (!request.mayStartInMaintenance) await deps.requireNoMaintenance();
      const { user, serverName } = request;
      const server = await existing(user.name, serverName);
      await requireBudget(request, await choicesFor(user.name), server);
      if (server.state !== 'stopped') await userServers.stop(user.name, serverName, askedBy);
      const accepted = userServers.start(request);
      accepted.catch((error: unknown) =>
        log.warn({ err: error, user: user.name, server: serverName }, 'restart refused'),
      );
      return { accepted };
    },

    async stop(userName, serverName, askedBy) {
      if (serverName === '' && (await store.find(userName, serverName)) === undefined) {
        return { stopped: Promise.resolve() };
      }
      const server = await existing(userName, serverName);
      await deps.beforeStop(userName, askedBy);
      return stop(server);
    },

    async stopAllOf(userName) {
      for (const server of await store.listOfUser(userName)) {
        if (server.state === 'stopped') continue;
        try {
          await stop(server);
        } catch (error) {
          const fields = { err: error, user: userName, server: server.name };
          log.error(fields, 'server of logged-out user could not be stopped');
        }
      }
    },

    async remove(userName, serverName, askedBy) {
      const server = await existing(userName, serverName);
      if (server.state !== 'stopped') await deps.beforeStop(userName, askedBy);
      const { stopped } = await stop(server);
      await stopped;
      await removeStopped(server);
    },

    async stopAtLimit(serverId, reason) {
      const server = await store.findById(serverId);
      if (server?.state !== 'running' || lifecycle.unitOf(serverId)?.state !== 'running') return;
      const { userName: user, name } = server;
      const seconds = (limitMs(server.limits, reason) ?? 0) / 1000;
      log.info({ user, server: name, reason, seconds }, 'stopping server at limit');
      const { stopped } = await stop(server, { reason, seconds });
      deps.onStopAtLimit(reason);
      await stopped;
      if (name === '' || !spawnerConfig.remove_named_servers_at_limit) return;
      const left = await store.findById(serverId);
      // Started again at once, it is wanted.
      if (left?.state === 'stopped' && left.stoppedBy === reason) await removeStopped(left);
    },

    async extend(userName, serverName, keepSeconds) {
      const server = await existing(userName, serverName);
      if (server.state !== 'running') {
        throw new HubError('conflict', text`The server does not run.`);
      }
      const limits = server.limits && { ...server.limits, keptUntil: undefined };
      const stop = comingStop({ ...server, limits });
      if (stop?.reason === 'max_age') {
        throw new HubError('conflict', text`The server has a longest time to run, which stays.`, {
          hint: text`It is stopped at ${exactTime(stop.at)}; save your work before, and start it again after that.`,
        });
      }
      const { keep_running_max_seconds: maxSeconds } = spawnerConfig;
      if (keepSeconds !== undefined && keepSeconds > maxSeconds) {
        throw new HubError('bad_request', text`A server cannot be kept running for so long.`, {
          hint: text`${maxSeconds} seconds are the most; Spawner.keep_running_max_seconds sets it.`,
        });
      }
      await deps.recordUse(server.id);
      if (keepSeconds !== undefined) {
        await deps.keepRunning(server.id, keepSeconds * 1000);
        const kept = serverAuditEvent('server.keep', { user_name: userName, name: serverName });
        await deps.audit.recordAlone({ ...kept, detail: { seconds: keepSeconds } });
      }
      return existing(userName, serverName);
    },

    deleteAllOf: deletion.ofUser,

    withoutServersOf: (user, work) => lifecycle.withoutServersOf(user.id, work),
  };
  return userServers;
}

function requireServerName(name: string): void {
  if (isServerName(name)) return;
  throw new HubError('bad_request', text`A server cannot have this name.`, {
    hint: text`Use 1–30 lowercase letters a-z, digits and single hyphens, starting with a letter and ending without a hyphen.`,
  });
}

function tooManyServers(limit: number): HubError {
  const reported = message(
    '{limit, plural, one {There is # named server already, the most that a user may have here.} other {There are # named servers already, the most that a user may have here.}}',
    { limit },
  );
  return new HubError('bad_request', reported, {
    hint: text`Delete one that is no longer needed.`,
  });
}

function suspended(): HubError {
  return new HubError('forbidden', text`This user is suspended.`, {
    hint: text`An administrator can end the suspension.`,
  });
}

function namedServersOff(): HubError {
  return new HubError('bad_request', text`Named servers are not enabled.`);
}

function stopFirst(): HubError {
  return new HubError('bad_request', text`Stop the server first.`);
}
