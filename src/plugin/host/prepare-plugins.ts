import { resolve } from 'node:path';
import { isLoopback } from '../../platform/addresses/host-address.ts';
import { firstLocalAddressIn } from '../../platform/addresses/local-addresses.ts';
import { isOpenToAll, socketPathOf } from '../../platform/config/bind-address.ts';
import { callbackUrlOf } from '../../platform/config/callback-url.ts';
import type { Config, SpawnerEntry } from '../../platform/config/config.ts';
import { asksForCertificates } from '../../platform/config/contradictions.ts';
import { formatPath } from '../../platform/config/problem-path.ts';
import { spawnerOf } from '../../platform/config/profile-spawner.ts';
import type { ConfigProblem } from '../../platform/errors.ts';
import { localizedTextIn } from '../../platform/texts/text.ts';
import type { PluginSurroundings } from './authenticator.ts';
import {
  type PreparedAuthenticator,
  type PreparedSpawner,
  type PreparedSpawnHook,
  tryAuthenticator,
  trySpawner,
  trySpawnHook,
} from './create-plugins.ts';
import { describeThrown } from './load-failure.ts';
import { isExternal } from './login-kinds.ts';
import {
  type AnyPlugin,
  builtInPluginsDirectory,
  createPluginLoader,
  type LoadedPlugin,
  type PluginKind,
  type PluginLoader,
} from './plugin-loader.ts';
import { describeLookup, findUnknownSections } from './plugin-names.ts';
import {
  checkPluginOptions,
  checkProfileOptions,
  locateOptionProblem,
  type PluginOptionsSource,
} from './plugin-options.ts';
import type { SpawnerPlugin } from './spawner.ts';

export interface PreparedPlugins {
  /** In the order of `Hub.authenticator_class`; without those that have problems. */
  readonly authenticators: readonly PreparedAuthenticator[];
  /** In the order of `Spawner.class`; none when no servers are configured, without those that have problems. */
  readonly spawners: readonly PreparedSpawner[];
  /** In the order of `Spawner.hooks`; without those that have problems. */
  readonly hooks: readonly PreparedSpawnHook[];
  readonly problems: readonly ConfigProblem[];
  readonly warnings: readonly ConfigProblem[];
}

/** The loader of a configuration: the hub's own plugins and those of `Hub.plugins_dir`. */
export function createConfiguredPluginLoader(
  config: Pick<Config, 'Hub' | 'directory'>,
): PluginLoader {
  const own = resolve(config.directory, config.Hub.plugins_dir);
  return createPluginLoader([builtInPluginsDirectory, own]);
}

/**
 * Loads the plugins that the configuration names, checks their options and creates each for trial.
 * Opens and starts nothing, so that `hub check` can do it too.
 */
export async function preparePlugins(
  config: Config,
  context: {
    readonly env: Readonly<Record<string, string | undefined>>;
    readonly loader?: PluginLoader;
  },
): Promise<PreparedPlugins> {
  const loader = context.loader ?? createConfiguredPluginLoader(config);
  const sources = { env: context.env, directory: config.directory };
  const problems: ConfigProblem[] = [];
  const warnings: ConfigProblem[] = [];
  const used: AnyPlugin[] = [];
  let hasUnreadable = false;

  async function find<Kind extends PluginKind>(kind: Kind, { className, path }: ConfiguredPlugin) {
    const lookup = await loader.find(kind, className);
    if (lookup.outcome === 'found') {
      used.push(lookup.plugin);
      return lookup;
    }
    problems.push({ path: formatPath(path), message: describeLookup(lookup, kind, className) });
    hasUnreadable ||= lookup.outcome === 'broken' || lookup.broken.length > 0;
    return undefined;
  }

  /** Checks the options by the plugin's own schema and its own rules; undefined after a problem. */
  function checkOptions(
    { plugin, file }: { readonly plugin: AnyPlugin; readonly file: string },
    { path, own }: ConfiguredPlugin,
    surroundings: PluginSurroundings,
  ): unknown {
    const source: PluginOptionsSource = {
      shared: config.pluginSections[plugin.section],
      own,
      ownPath: Object.keys(own).length > 0 ? path : undefined,
    };
    let step = 'optionsSchema';
    try {
      const checked = checkPluginOptions(plugin, source, sources);
      problems.push(...checked.problems);
      warnings.push(...checked.warnings);
      if (checked.options === undefined) return undefined;
      step = 'findProblems';
      const found = plugin.findProblems?.(checked.options, surroundings) ?? [];
      problems.push(...found.map((problem) => locateOptionProblem(plugin, source, problem)));
      return found.length === 0 ? checked.options : undefined;
    } catch (error) {
      const message = describeThrown(error, file, `fails in ${step}`);
      problems.push({ path: formatPath(path), message });
      return undefined;
    }
  }

  const authenticators: PreparedAuthenticator[] = [];
  const external: string[] = [];
  for (const [index, entry] of config.authenticators.entries()) {
    const isList = Array.isArray(config.Hub.authenticator_class);
    const path = ['Hub', 'authenticator_class', ...(isList ? [index] : [])];
    const configured = { className: entry.class, path, own: entry.options };
    const found = await find('authenticator', configured);
    if (found === undefined) continue;
    const surroundings = authenticatorSurroundings(config, entry.name);
    const options = checkOptions(found, configured, surroundings);
    if (options === undefined) continue;
    const { plugin, file } = found;
    const prepared = { entry, plugin, file, options, surroundings };
    const message = await tryAuthenticator(prepared, {
      onCreated: (created) => isExternal(created) && external.push(entry.name),
    });
    if (message === undefined) authenticators.push(prepared);
    else problems.push({ path: formatPath(path), message });
  }
  if (external.length > 1 && !config.Authenticator.separate_callbacks) {
    warnings.push(mixUpWarning(external));
  }

  async function prepareSpawner(
    { class: className, name, options: own }: SpawnerEntry,
    index: number,
  ): Promise<PreparedSpawner | undefined> {
    const isList = Array.isArray(config.Spawner.class);
    const path = ['Spawner', 'class', ...(isList ? [index] : [])];
    const configured = { className, path, own };
    const found = await find('spawner', configured);
    if (found === undefined) return undefined;
    const { plugin, file } = found;
    const surroundings = surroundingsOf(config, name);
    const options = checkOptions(found, configured, surroundings);
    if (options === undefined) return undefined;
    const profileOptions = profileOptionsOf({ plugin, file }, name);
    if (profileOptions === undefined) return undefined;
    const prepared = { name, plugin, file, options, profileOptions, surroundings };
    const message = await trySpawner(prepared, {
      onCreated: ({ needsReachableHub, pause }) => {
        if (needsReachableHub === true) problems.push(...findUnreachableHub(config, name));
        if (config.Spawner.idle_action === 'pause' && pause === undefined) {
          const message = `is "pause", and the spawner ${JSON.stringify(name)} cannot pause servers here; local-process needs a cgroup of version 2 that the hub may write`;
          problems.push({ path: 'Spawner.idle_action', message });
        }
      },
    });
    if (message === undefined) return prepared;
    problems.push({ path: formatPath(configured.path), message });
    return undefined;
  }

  /** Undefined after a problem. */
  function profileOptionsOf(
    { plugin, file }: LoadedPlugin<SpawnerPlugin>,
    spawnerName: string,
  ): PreparedSpawner['profileOptions'] | undefined {
    const profiles = config.Spawner.profiles.flatMap((profile, index) => {
      const { name, options } = profile;
      const isItsOwn = spawnerOf(profile, config.spawners) === spawnerName;
      return isItsOwn ? [{ name, options, path: ['Spawner', 'profiles', index] }] : [];
    });
    try {
      const checked = checkProfileOptions(plugin, profiles);
      problems.push(...checked.problems);
      return checked.problems.length === 0 ? checked.profileOptions : undefined;
    } catch (error) {
      const message = describeThrown(error, file, 'fails in profileOptionsSchema');
      problems.push({ path: 'Spawner.profiles', message });
      return undefined;
    }
  }

  const spawners: PreparedSpawner[] = [];
  for (const [index, entry] of needsSpawner(config) ? config.spawners.entries() : []) {
    const spawner = await prepareSpawner(entry, index);
    if (spawner !== undefined) spawners.push(spawner);
  }
  const hooks: PreparedSpawnHook[] = [];
  for (const [index, { class: className, name, options: own }] of config.hooks.entries()) {
    const configured = { className, path: ['Spawner', 'hooks', index], own };
    const found = await find('spawn-hook', configured);
    if (found === undefined) continue;
    const surroundings = surroundingsOf(config, name);
    const options = checkOptions(found, configured, surroundings);
    if (options === undefined) continue;
    const prepared = { name, plugin: found.plugin, file: found.file, options, surroundings };
    const message = await trySpawnHook(prepared);
    if (message === undefined) hooks.push(prepared);
    else problems.push({ path: formatPath(configured.path), message });
  }
  problems.push(...(await findUnknownSections(config, { loader, used, hasUnreadable })));
  return { authenticators, spawners, hooks, problems: withoutRepeats(problems), warnings };
}

/**
 * PKCE and nonce do not help there: the provider that forwards the user chooses both (RFC 9700 §4.4). Whether a
 * provider sends `iss` (RFC 9207), which does, is known only when it is asked.
 */
function mixUpWarning(names: readonly string[]): ConfigProblem {
  return {
    path: 'Authenticator.separate_callbacks',
    message:
      `is off, and ${names.join(', ')} send browsers back to one address: if one of them turns hostile, it can get logins ` +
      'of another that does not send iss (RFC 9207), as most plain OAuth 2 providers; register an address for each, ' +
      'then turn it on',
  };
}

/** A plugin as the configuration names it. */
interface ConfiguredPlugin {
  readonly className: string;
  readonly path: readonly PropertyKey[];
  /** Options that stand with the name, over those of the plugin's section. */
  readonly own: Readonly<Record<string, unknown>>;
}

/** Servers on other machines have a loopback of their own. */
function findUnreachableHub({ connectUrl, Hub }: Config, spawner: string): ConfigProblem[] {
  if (!isLoopback(connectUrl.hostname)) return [];
  const source = Hub.hub_connect_url === undefined ? ' (hub_bind_url)' : '';
  const message =
    `${connectUrl.origin}${source} leads nowhere from the servers of "${spawner}": give the address at which they ` +
    'reach the hub, such as http://10.0.0.5:8080, and let hub_bind_url listen there';
  return [{ path: 'Hub.hub_connect_url', message }];
}

/** Without a command nothing is started, unless another spawner brings its own. */
function needsSpawner({ Spawner, spawners }: Config): boolean {
  const hasServers = Spawner.cmd !== undefined || Spawner.profiles.some(({ cmd }) => cmd);
  return hasServers || spawners.some((spawner) => spawner.class !== 'local-process');
}

/** Two entries of one plugin find the same problems in the section they share. */
function withoutRepeats(problems: readonly ConfigProblem[]): ConfigProblem[] {
  const byText = new Map(
    problems.map((problem) => [`${problem.path}: ${problem.message}`, problem]),
  );
  return [...byText.values()];
}

function authenticatorSurroundings(
  config: Config,
  name: string,
): PreparedAuthenticator['surroundings'] {
  const { enable_auth_state, manage_groups, separate_callbacks } = config.Authenticator;
  return {
    ...surroundingsOf(config, name),
    callbackUrl: callbackUrlOf(config.publicUrl, separate_callbacks ? name : undefined),
    shared: { enableAuthState: enable_auth_state, manageGroups: manage_groups },
  };
}

function surroundingsOf({ Hub, publicUrl, directory }: Config, name: string): PluginSurroundings {
  return {
    name,
    publicUrl: publicUrl.href,
    isLoopbackOnly: isLoopback(new URL(Hub.bind_url).hostname),
    trustedLocalAddress: trustedLocalAddressOf(Hub),
    asksForCertificates: asksForCertificates(Hub),
    hubTitle: localizedTextIn(Hub.title, Hub.language),
    directory,
  };
}

/** Over a Unix socket it is the mode that says who is believed, and not an address. */
function trustedLocalAddressOf({
  bind_url,
  bind_socket_mode,
  trusted_proxies,
}: Config['Hub']): string | undefined {
  const path = socketPathOf(bind_url);
  if (path === undefined) return firstLocalAddressIn(trusted_proxies);
  return isOpenToAll(bind_socket_mode) ? path : undefined;
}
