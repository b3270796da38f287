import type { SpawnPreparation } from '../../identity/authentication/spawn-hooks.ts';
import type { TokenIssuer } from '../../identity/oauth/tokens/token-issuer.ts';
import type { RoleStore } from '../../identity/rbac/role-store.ts';
import type { GroupStore } from '../../identity/users/group-store.ts';
import type { User } from '../../identity/users/user-store.ts';
import type { UserVolumeStore } from '../../identity/users/user-volume-store.ts';
import type { Config, SpawnerConfig } from '../../platform/config/config.ts';
import { HubError, TextError } from '../../platform/errors.ts';
import type { Origins } from '../../platform/http/origins.ts';
import { serverClientId } from '../../platform/protocol/client-id.ts';
import { objectName } from '../../platform/protocol/object-name.ts';
import { inSeconds } from '../../platform/texts/seconds.ts';
import { text } from '../../platform/texts/text.ts';
import type { StartSettings } from '../../plugin/host/spawn-hook.ts';
import type { ServerIdentity, StartCallbacks } from '../../plugin/host/spawn-request.ts';
import {
  createOwnProbe,
  type probeReadiness,
  waitUntilReady,
} from '../../spawning/processes/readiness-probe.ts';
import { withSingleuserOnPath } from '../../spawning/processes/singleuser-program.ts';
import type { AddressReports } from './address-reports.ts';
import { type AppAccess, appAccessOf } from './app-access.ts';
import { ownVolume } from './own-volume.ts';
import { rescueCommand } from './rescue.ts';
import { safeFileName } from './safe-file-name.ts';
import { type Server, serverPrefix } from './server.ts';
import type { ServerAccount } from './server-accounts.ts';
import { addressEnvironment, portVariable, serverEnvironment } from './server-environment.ts';
import type { LaunchPlan } from './server-start.ts';
import type { ChosenOptions } from './spawn-options.ts';
import type { SpawnerSet } from './spawner-set.ts';
import type { StartHooks } from './start-hooks.ts';
import { endedWithoutHub, homeIsFull } from './start-texts.ts';

export type BeforeSpawn = (
  user: User,
  serverName: string,
  signal: AbortSignal,
) => Promise<SpawnPreparation>;

/** What to start: everything but what can change until the start begins. */
export interface Launch {
  readonly user: User;
  readonly server: Server;
  readonly account: ServerAccount;
  readonly chosen: ChosenOptions;
}

export interface LaunchPlannerDeps {
  readonly config: Pick<Config, 'Hub' | 'Spawner' | 'basePath'>;
  readonly origins: Origins;
  readonly apiUrl: string;
  /** The hub's own environment. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly spawner: Pick<SpawnerSet, 'start' | 'resume' | 'canResume' | 'homeSpace'>;
  /** `options` of a profile, or of none, as the spawner's schema parsed them. */
  readonly profileOptionsOf: (profile: string | undefined) => unknown;
  readonly groups: Pick<GroupStore, 'groupNamesOf'>;
  readonly userVolumes: Pick<UserVolumeStore, 'list'>;
  readonly tokenIssuer: Pick<TokenIssuer, 'createServerToken'>;
  readonly roles: Pick<RoleStore, 'getByName'>;
  readonly beforeSpawn: BeforeSpawn;
  readonly hooks: Pick<StartHooks, 'beforeStart'>;
  readonly addressReports: Pick<AddressReports, 'await'>;
  /** Asks a server once whether it answers. */
  readonly probe: typeof probeReadiness;
  readonly resolvePath: (path: string) => string;
}

/** Prepares the starts of servers: gathers what a spawner is told, and knows when a server is ready. */
export interface LaunchPlanner {
  plan(launch: Launch): LaunchPlan;
  /** Goes on with a start of an earlier hub; undefined where its spawner cannot, or has kept no state of it. */
  planResume(server: Server): LaunchPlan | undefined;
}

export function createLaunchPlanner(deps: LaunchPlannerDeps): LaunchPlanner {
  const { Hub, Spawner: spawnerConfig } = deps.config;
  const { basePath } = deps.config;

  async function issueToken(user: User, server: Server): Promise<string> {
    const configured = spawnerConfig.server_token_scopes;
    const scopes =
      configured.length > 0 ? configured : (await deps.roles.getByName('server')).scopes;
    const issued = await deps.tokenIssuer.createServerToken({
      user,
      server,
      // Without it the server could not report that it is in use, and would be taken for idle.
      scopes: [...new Set([...scopes, 'users:activity!user'])],
    });
    return issued.token;
  }

  function environmentOf(
    { user, server, chosen }: Launch,
    { token, settings }: { readonly token: string; readonly settings: StartSettings },
  ): Record<string, string> {
    const environment = serverEnvironment({
      userName: user.name,
      serverName: server.name,
      clientId: serverClientId(user.name, server.name),
      apiToken: token,
      apiUrl: deps.apiUrl,
      origins: deps.origins,
      basePath,
      prefix: serverPrefix(basePath, user.name, server.name),
      defaultUrl: chosen.defaultUrl,
      allowedScopes: spawnerConfig.oauth_client_allowed_scopes,
      memoryLimitBytes: settings.limits.memoryBytes,
      cpuLimitCores: settings.limits.cpuCores,
      prefixes: Hub.environment_prefixes,
      inherited: deps.environment,
      keep: spawnerConfig.env_keep,
      extra: settings.environment,
    });
    return withSingleuserOnPath(environment);
  }

  /** What the configuration, the choice and the authenticators make of a start. */
  function settingsOf(
    { server, account, chosen }: Launch,
    {
      additions,
      groups,
    }: { readonly additions: SpawnPreparation; readonly groups: readonly string[] },
  ): StartSettings {
    return {
      ...identityOf(server, account.isClaimed ? account.name : undefined),
      groups,
      ...(chosen.profile !== undefined && { profile: chosen.profile }),
      ...(account.systemUser !== undefined && { systemUser: account.systemUser }),
      userOptions: chosen.userOptions,
      authStates: additions.authStates,
      command: chosen.command,
      environment: { ...chosen.environment, ...additions.environment },
      workingDirectory: deps.resolvePath(homeOf(spawnerConfig, account.name)),
      limits: chosen.limits,
      guarantees: chosen.guarantees,
      volumes: chosen.volumes.map((volume) => ownVolume(volume, account.name, server.name)),
    };
  }

  function awaitAddressOf({ id }: Server, signal: AbortSignal): StartCallbacks['awaitAddress'] {
    return (accept) => {
      const address = deps.addressReports.await(id, accept, signal);
      // A spawner that has given up before may have left it.
      address.catch(() => undefined);
      return address;
    };
  }

  function waitsFor(
    { userName, name }: Server,
    access: AppAccess,
  ): Omit<LaunchPlan, 'launch' | 'userOptions' | 'profile'> {
    const prefix = access.stripsPrefix ? '/' : serverPrefix(basePath, userName, name);
    return {
      startTimeoutMs: spawnerConfig.start_timeout * 1000,
      waitUntilReady: (spawned, signal) =>
        requireAnswer(spawned, {
          path: prefix + access.readyPath.slice(1),
          seconds: spawnerConfig.http_timeout,
          probe: deps.probe,
          signal,
        }),
    };
  }

  return {
    planResume(server) {
      const { state, spawnerState } = server;
      const hasSaved = state === 'starting' && Object.keys(spawnerState).length > 0;
      if (!hasSaved || !deps.spawner.canResume(spawnerState)) return undefined;
      return {
        ...waitsFor(server, appAccessOf(spawnerConfig, server)),
        userOptions: server.userOptions,
        async launch(callbacks) {
          const resumed = await deps.spawner.resume?.(spawnerState, {
            ...callbacks,
            ...identityOf(server),
            awaitAddress: awaitAddressOf(server, callbacks.signal),
          });
          if (resumed !== undefined) return resumed;
          throw new TextError(endedWithoutHub);
        },
      };
    },

    plan(launch) {
      const { user, server, chosen } = launch;
      const access = appAccessOf(spawnerConfig, chosen);
      return {
        ...waitsFor(server, access),
        userOptions: chosen.userOptions,
        profile: chosen.profile,
        async launch(callbacks) {
          const { signal, isOurs } = callbacks;
          const [additions, groups, givenVolumes] = await Promise.all([
            deps.beforeSpawn(user, server.name, signal),
            deps.groups.groupNamesOf(user.name),
            deps.userVolumes.list(user.id),
          ]);
          const configured = settingsOf(launch, { additions, groups });
          const settings = await deps.hooks.beforeStart(configured, signal);
          // Held up until another instance has started it, this one must not take its token away.
          if (!isOurs()) throw lostMeanwhile();
          const token = await issueToken(user, server);
          const { memoryBytes } = settings.limits;
          const rescue = await rescueCommand(settings, {
            config: spawnerConfig,
            access: access.access,
            spawner: deps.spawner,
          });
          if (rescue !== undefined) callbacks.onProgress({ progress: 5, message: homeIsFull });
          return deps.spawner.start({
            ...callbacks,
            ...settings,
            givenVolumes,
            ...(rescue !== undefined && { command: rescue }),
            isRescue: rescue !== undefined,
            profileOptions: deps.profileOptionsOf(chosen.profile),
            environment: environmentOf(launch, { token, settings }),
            environmentForUrl: (url) => ({
              // Many apps listen there unless told otherwise. A guard of its own has another port for its app.
              ...(access.access === 'gateway' && portVariable(url)),
              ...addressEnvironment(url, Hub.environment_prefixes),
            }),
            ...(memoryBytes !== undefined && { memoryLimitBytes: memoryBytes }),
            ip: spawnerConfig.ip,
            socket: spawnerConfig.socket,
            stopGraceMs: spawnerConfig.stop_timeout * 1000,
            awaitAddress: awaitAddressOf(server, signal),
          });
        },
      };
    },
  };
}

/** The folder in which the servers of an account run, as the configuration names it. */
export function homeOf({ home_dir }: Pick<SpawnerConfig, 'home_dir'>, accountName: string): string {
  return home_dir.replaceAll('{username}', safeFileName(accountName));
}

function lostMeanwhile(): HubError {
  return new HubError('unavailable', text`Another instance of the hub may have the server by now.`);
}

/** What engines and hooks know a server by. */
export function identityOf(
  { id, userName, name }: Pick<Server, 'id' | 'userName' | 'name'>,
  accountName?: string,
): ServerIdentity {
  return {
    serverId: id,
    userName,
    serverName: name,
    objectName: objectName(userName, name),
    ...(accountName === undefined ? {} : { accountName }),
  };
}

async function requireAnswer(
  { url, findForeignProcess }: Parameters<LaunchPlan['waitUntilReady']>[0],
  options: {
    readonly path: string;
    readonly seconds: number;
    readonly signal: AbortSignal;
    readonly probe: typeof probeReadiness;
  },
): Promise<void> {
  const { path, seconds, signal } = options;
  const probe =
    findForeignProcess === undefined
      ? options.probe
      : createOwnProbe(options.probe, () => findForeignProcess({ isAnswered: true }));
  const result = await waitUntilReady({ url, path, timeoutMs: seconds * 1000, signal, probe });
  if (result.ready) return;
  const duration = inSeconds(String(seconds));
  throw new TextError(
    text`The server started but did not answer within ${duration}: ${result.reason}.`,
  );
}
