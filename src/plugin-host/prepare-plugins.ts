import { resolve } from 'node:path';
import type { AuthenticatorEntry, Config } from '../config/config.ts';
import { sectionsWith } from '../config/sections.ts';
import { closestName, didYouMean } from '../config/suggestion.ts';
import type { ConfigProblem } from '../errors.ts';
import type { AuthenticatorPlugin, PluginSurroundings } from './authenticator.ts';
import { describeThrown } from './load-failure.ts';
import {
  type AnyPlugin,
  builtInPluginsDirectory,
  createPluginLoader,
  type PluginKind,
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

  let hasUnreadable = false;

  async function find<Kind extends PluginKind>(kind: Kind, name: string, path: string) {
    const lookup = await loader.find(kind, name);
    if (lookup.outcome === 'found') return lookup;
    problems.push({ path, message: describeLookup(lookup, kind, name) });
    hasUnreadable ||= lookup.outcome === 'broken' || lookup.broken.length > 0;
    return undefined;
  }

  const authenticators: PreparedAuthenticator[] = [];
  for (const [index, entry] of config.authenticators.entries()) {
    const path = Array.isArray(config.Hub.authenticator_class)
      ? ['Hub', 'authenticator_class', index]
      : ['Hub', 'authenticator_class'];
    const found = await find('authenticator', entry.class, pathText(path));
    if (found === undefined) continue;
    const { plugin, file } = found;
    const hasOwnOptions = Object.keys(entry.options).length > 0;
    const source: PluginOptionsSource = {
      shared: config.pluginSections[plugin.section],
      own: entry.options,
      ownPath: hasOwnOptions ? path : undefined,
    };
    const options = check(plugin, source);
    if (options === undefined) continue;
    const surroundings = surroundingsOf(config, entry.name);
    try {
      const contradictions = plugin.findProblems?.(options, surroundings) ?? [];
      problems.push(
        ...contradictions.map((problem) => locateOptionProblem(plugin, source, problem)),
      );
    } catch (error) {
      const message = describeThrown(error, file, 'throws in findProblems');
      problems.push({ path: pathText(path), message });
    }
    authenticators.push({ entry, plugin, options, surroundings });
  }

  const spawner = await prepareSpawner(config, find, check);
  problems.push(...(await unknownSections(config, { loader, used, hasUnreadable })));
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
  find: (
    kind: 'spawner',
    name: string,
    path: string,
  ) => Promise<{ readonly plugin: SpawnerPlugin } | undefined>,
  check: (plugin: AnyPlugin, source: PluginOptionsSource) => unknown,
): Promise<PreparedSpawner | undefined> {
  const hasServers = Spawner.cmd !== undefined || Spawner.profiles.some(({ cmd }) => cmd);
  if (!hasServers && Spawner.class === 'local-process') return undefined;
  const found = await find('spawner', Spawner.class, 'Spawner.class');
  if (found === undefined) return undefined;
  const { plugin } = found;
  const source = { shared: pluginSections[plugin.section], own: {}, ownPath: undefined };
  const options = check(plugin, source);
  return options === undefined ? undefined : { plugin, options };
}

/**
 * Finds sections that belong to no plugin. Only for those must every plugin be loaded. Where a plugin
 * that the configuration names cannot be read, any section may be that plugin's: nothing is said of it.
 */
async function unknownSections(
  config: Config,
  {
    loader,
    used,
    hasUnreadable,
  }: {
    readonly loader: PluginLoader;
    readonly used: readonly AnyPlugin[];
    readonly hasUnreadable: boolean;
  },
): Promise<ConfigProblem[]> {
  const known = new Set(used.map(({ section }) => section));
  const rest = Object.keys(config.pluginSections).filter((name) => !known.has(name));
  if (rest.length === 0) return [];

  const { plugins, broken } = await loader.list();
  const sections = plugins.map(({ plugin }) => plugin.section);
  const unread = broken.map(({ message }) => `; ${message}`).join('');
  return rest
    .filter((name) => !sections.includes(name))
    .flatMap((name) => {
      const [home] = sectionsWith(name);
      if (home !== undefined) return [{ path: name, message: `belongs in the section ${home}` }];
      if (hasUnreadable) return [];
      const suggestion = sectionMeantBy(name, [
        'Hub',
        'Authenticator',
        'Spawner',
        'Proxy',
        ...sections,
      ]);
      const message = `is no section of the hub or of a plugin${suggestion}${unread}`;
      return [{ path: name, message }];
    });
}

/** Names of sections end alike: what is alike in them must not make one look like another. */
function sectionMeantBy(name: string, known: readonly string[]): string {
  const [, ending = ''] = /.(Authenticator|Spawner)$/.exec(name) ?? [];
  const stem = name.slice(0, name.length - ending.length);
  const stems = known.flatMap((section) =>
    section !== ending && section.endsWith(ending)
      ? section.slice(0, section.length - ending.length)
      : [],
  );
  const meant = closestName(stem, stems);
  return meant === undefined ? '' : `; did you mean \`${meant}${ending}\`?`;
}

const words = {
  authenticator: { article: 'an authenticator', setting: 'Hub.authenticator_class' },
  spawner: { article: 'a spawner', setting: 'Spawner.class' },
} as const satisfies Readonly<Record<PluginKind, object>>;

function describeLookup(
  lookup: Exclude<PluginLookup<unknown>, { outcome: 'found' }>,
  kind: PluginKind,
  name: string,
): string {
  if (lookup.outcome === 'broken') return lookup.message;
  const { otherKind, broken } = lookup;
  if (otherKind !== undefined) {
    const { article, setting } = words[otherKind.plugin.kind];
    return `"${name}" in ${otherKind.file} is ${article}, not ${words[kind].article}; name it in ${setting}`;
  }
  const unread = broken.map(({ message }) => `; ${message}`).join('');
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
