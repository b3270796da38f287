import { resolve } from 'node:path';
import type { AuthenticatorEntry, Config } from '../config/config.ts';
import { sectionsWith } from '../config/sections.ts';
import { didYouMean } from '../config/suggestion.ts';
import type { ConfigProblem } from '../errors.ts';
import type { AuthenticatorPlugin, PluginSurroundings } from './authenticator.ts';
import {
  type AnyPlugin,
  builtInPluginsDirectory,
  createPluginLoader,
  type PluginLoader,
  type PluginLookup,
} from './plugin-loader.ts';
import {
  checkPluginOptions,
  locateOptionProblem,
  type PluginOptionsSource,
} from './plugin-options.ts';
import type { SpawnerPlugin } from './spawner.ts';

/** A configured authenticator, ready to be created. */
export interface PreparedAuthenticator {
  readonly entry: AuthenticatorEntry;
  readonly plugin: AuthenticatorPlugin;
  readonly options: unknown;
  readonly surroundings: PluginSurroundings;
}

export interface PreparedSpawner {
  readonly plugin: SpawnerPlugin;
  readonly options: unknown;
}

export interface PreparedPlugins {
  /** In the order of `Hub.authenticator_class`; without those that have problems. */
  readonly authenticators: readonly PreparedAuthenticator[];
  /** Undefined when no servers are configured, or when it has problems. */
  readonly spawner: PreparedSpawner | undefined;
  readonly problems: readonly ConfigProblem[];
  readonly warnings: readonly ConfigProblem[];
}

/** Creates the loader of a configuration: the hub's own plugins and those of `Hub.plugins_dir`. */
export function createConfiguredPluginLoader(
  config: Pick<Config, 'Hub' | 'directory'>,
): PluginLoader {
  const own = resolve(config.directory, config.Hub.plugins_dir);
  return createPluginLoader([builtInPluginsDirectory, own]);
}

/**
 * Loads the plugins that the configuration names and checks their options. Creates none of them, so
 * that `hub check` can do it too.
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

  function check(plugin: AnyPlugin, source: PluginOptionsSource): unknown {
    used.push(plugin);
    const checked = checkPluginOptions(plugin, source, sources);
    problems.push(...checked.problems);
    warnings.push(...checked.warnings);
    return checked.options;
  }

  const authenticators: PreparedAuthenticator[] = [];
  for (const [index, entry] of config.authenticators.entries()) {
    const path = Array.isArray(config.Hub.authenticator_class)
      ? ['Hub', 'authenticator_class', index]
      : ['Hub', 'authenticator_class'];
    const lookup = await loader.find('authenticator', entry.class);
    if (lookup.outcome !== 'found') {
      const message = describeLookup(lookup, 'authenticator', entry.class);
      problems.push({ path: pathText(path), message });
      continue;
    }
    const { plugin } = lookup;
    const hasOwnOptions = Object.keys(entry.options).length > 0;
    const source: PluginOptionsSource = {
      shared: config.pluginSections[plugin.section],
      own: entry.options,
      ownPath: hasOwnOptions ? path : undefined,
    };
    const options = check(plugin, source);
    if (options === undefined) continue;
    const surroundings = surroundingsOf(config, entry.name);
    const found = plugin.findProblems?.(options, surroundings) ?? [];
    problems.push(...found.map((problem) => locateOptionProblem(plugin, source, problem)));
    authenticators.push({ entry, plugin, options, surroundings });
  }

  const spawner = await prepareSpawner(config, loader, check, problems);
  problems.push(...(await unknownSections(config, loader, used)));
  return { authenticators, spawner, problems: withoutRepeats(problems), warnings };
}

/** Two entries of one plugin find the same problems in the section they share. */
function withoutRepeats(problems: readonly ConfigProblem[]): ConfigProblem[] {
  const byText = new Map(
    problems.map((problem) => [`${problem.path}: ${problem.message}`, problem]),
  );
  return [...byText.values()];
}

async function prepareSpawner(
  { Spawner, pluginSections }: Config,
  loader: PluginLoader,
  check: (plugin: AnyPlugin, source: PluginOptionsSource) => unknown,
  problems: ConfigProblem[],
): Promise<PreparedSpawner | undefined> {
  const hasServers = Spawner.cmd !== undefined || Spawner.profiles.some(({ cmd }) => cmd);
  if (!hasServers && Spawner.class === 'local-process') return undefined;
  const lookup = await loader.find('spawner', Spawner.class);
  if (lookup.outcome !== 'found') {
    const message = describeLookup(lookup, 'spawner', Spawner.class);
    problems.push({ path: 'Spawner.class', message });
    return undefined;
  }
  const { plugin } = lookup;
  const source = { shared: pluginSections[plugin.section], own: {}, ownPath: undefined };
  const options = check(plugin, source);
  return options === undefined ? undefined : { plugin, options };
}

/** Finds sections that belong to no plugin. Only for those must every plugin be loaded. */
async function unknownSections(
  config: Config,
  loader: PluginLoader,
  used: readonly AnyPlugin[],
): Promise<ConfigProblem[]> {
  const known = new Set(used.map(({ section }) => section));
  const rest = Object.keys(config.pluginSections).filter((name) => !known.has(name));
  if (rest.length === 0) return [];

  const { plugins, broken } = await loader.list();
  const sections = plugins.map(({ plugin }) => plugin.section);
  return rest
    .filter((name) => !sections.includes(name))
    .map((name) => {
      const [home] = sectionsWith(name);
      if (home !== undefined) return { path: name, message: `belongs in the section ${home}` };
      const suggestion = didYouMean(name, [
        'Hub',
        'Authenticator',
        'Spawner',
        'Proxy',
        ...sections,
      ]);
      const unread = broken.map(({ file, message }) => `; ${file} ${message}`).join('');
      return {
        path: name,
        message: `is no section of the hub or of a plugin${suggestion}${unread}`,
      };
    });
}

function describeLookup(
  lookup: Exclude<PluginLookup<unknown>, { outcome: 'found' }>,
  kind: string,
  name: string,
): string {
  if (lookup.outcome === 'broken') return lookup.message;
  const unread = lookup.broken.map(({ file, message }) => `; ${file} ${message}`).join('');
  const suggestion = didYouMean(name, lookup.known);
  const known = suggestion === '' ? `; there are ${lookup.known.join(', ') || 'none'}` : suggestion;
  return `there is no ${kind} plugin called "${name}"${known}${unread}`;
}

function surroundingsOf({ Hub, publicUrl }: Config, name: string): PluginSurroundings {
  return {
    name,
    publicUrl: publicUrl.href,
    isLoopbackOnly: isLoopback(new URL(Hub.bind_url).hostname),
    hubTitle: Hub.title,
  };
}

function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d+){3}$/.test(hostname);
}

function pathText(path: readonly (string | number)[]): string {
  const [section, key, index] = path;
  return index === undefined ? `${section}.${key}` : `${section}.${key}[${index}]`;
}
