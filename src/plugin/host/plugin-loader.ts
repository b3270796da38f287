import { type Dirent, readdirSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { programFolder } from '../../platform/files/program-folder.ts';
import type { AuthenticatorPlugin } from './authenticator.ts';
import { provideHostPackages } from './host-packages.ts';
import { describeLoadFailure } from './load-failure.ts';
import { shapeProblem } from './plugin-shape.ts';
import type { SpawnHookPlugin } from './spawn-hook.ts';
import type { SpawnerPlugin } from './spawner.ts';

export interface Plugins {
  readonly authenticator: AuthenticatorPlugin;
  readonly spawner: SpawnerPlugin;
  readonly 'spawn-hook': SpawnHookPlugin;
}

export type PluginKind = keyof Plugins;
export type AnyPlugin = Plugins[PluginKind];

export interface LoadedPlugin<Plugin = AnyPlugin> {
  readonly plugin: Plugin;
  readonly file: string;
}

export interface BrokenPlugin {
  readonly file: string;
  /** Names the file, with the line where that can be told. */
  readonly message: string;
}

export type PluginLookup<Plugin> =
  | { readonly outcome: 'found'; readonly plugin: Plugin; readonly file: string }
  | {
      readonly outcome: 'missing';
      readonly known: readonly string[];
      /** A plugin of that name and of another kind. */
      readonly otherKind: LoadedPlugin | undefined;
      readonly broken: readonly BrokenPlugin[];
    }
  | { readonly outcome: 'broken'; readonly message: string };

/** Finds plugins by their names in folders of plugin files. */
export interface PluginLoader {
  find<Kind extends PluginKind>(kind: Kind, name: string): Promise<PluginLookup<Plugins[Kind]>>;
  /** Loads every plugin there is. */
  list(): Promise<{ plugins: readonly LoadedPlugin[]; broken: readonly BrokenPlugin[] }>;
}

/** The folder of the plugins that come with the hub. */
export const builtInPluginsDirectory = join(programFolder, 'plugins');

/**
 * A loader that imports a file only when it is asked for: a file called like the plugin comes
 * first, and the other files are read only when none of those is the one.
 */
export function createPluginLoader(directories: readonly string[]): PluginLoader {
  const files = listPluginFiles(directories);
  const loading = new Map<string, Promise<LoadedPlugin | BrokenPlugin>>();

  async function load(selected: readonly PluginFile[]) {
    const results = await Promise.all(
      selected.map(({ file }) => {
        const result = loading.get(file) ?? importPlugin(file);
        loading.set(file, result);
        return result;
      }),
    );
    return {
      plugins: results.filter((result) => 'plugin' in result),
      broken: results.filter((result) => 'message' in result),
    };
  }

  function select<Kind extends PluginKind>(
    plugins: readonly LoadedPlugin[],
    kind: Kind,
    name: string,
  ): PluginLookup<Plugins[Kind]> | undefined {
    const found = plugins.filter(({ plugin }) => plugin.kind === kind && plugin.name === name);
    const [first] = found;
    if (first === undefined) return undefined;
    if (found.length > 1) {
      const places = found.map(({ file }) => file).join(' and ');
      return { outcome: 'broken', message: `two plugins are called "${name}": ${places}` };
    }
    // The kind was compared above; the compiler cannot carry that over to the type parameter.
    return { outcome: 'found', plugin: first.plugin as Plugins[Kind], file: first.file };
  }

  return {
    async find(kind, name) {
      const likely = await load(files.filter(({ stem }) => stem === name));
      const direct = select(likely.plugins, kind, name);
      if (direct !== undefined) return direct;
      const [broken] = likely.broken;
      if (broken !== undefined) return { outcome: 'broken', message: broken.message };
      const all = await load(files);
      const known = all.plugins.filter(({ plugin }) => plugin.kind === kind);
      return (
        select(all.plugins, kind, name) ?? {
          outcome: 'missing',
          known: known.map(({ plugin }) => plugin.name),
          otherKind: all.plugins.find(({ plugin }) => plugin.name === name),
          broken: all.broken,
        }
      );
    },

    list: () => load(files),
  };
}

interface PluginFile {
  /** Name of the file without its extension, or of the folder. */
  readonly stem: string;
  readonly file: string;
}

function listPluginFiles(directories: readonly string[]): PluginFile[] {
  const existing = new Set(directories.flatMap((directory) => realPath(directory) ?? []));
  return [...existing].flatMap((directory) => {
    if (directory !== builtInPluginsDirectory)
      provideHostPackages({ path: directory, isFolder: true });
    return readEntries(directory).flatMap((entry) => pluginFileOf(directory, entry) ?? []);
  });
}

function pluginFileOf(directory: string, entry: Dirent): PluginFile | undefined {
  const { name } = entry;
  const path = join(directory, name);
  if (/^[._]/.test(name) || name === 'node_modules') return undefined;
  const index = entry.isFile()
    ? undefined
    : readEntries(path).find((inner) => /^index\.(ts|js|mjs)$/.test(inner.name));
  const [, stem] = /^(.+)\.(?:ts|js|mjs)$/.exec(name) ?? [];
  if (index === undefined && (stem === undefined || /\.(d|test)$/.test(stem))) return undefined;
  if (entry.isSymbolicLink()) {
    // Modules are known by where they really are.
    provideHostPackages({ path: realPath(path) ?? path, isFolder: index !== undefined });
  }
  return index === undefined
    ? { stem: stem ?? name, file: path }
    : { stem: name, file: join(path, index.name) };
}

/** Resolves links; undefined for what does not exist: a plugin in there is then told to be missing. */
function realPath(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}

function readEntries(directory: string): Dirent[] {
  try {
    return readdirSync(directory, { withFileTypes: true }).sort((left, right) =>
      left.name < right.name ? -1 : 1,
    );
  } catch {
    // Not a folder, or not one that may be read: its plugins are missing.
    return [];
  }
}

async function importPlugin(file: string): Promise<LoadedPlugin | BrokenPlugin> {
  let module: { default?: unknown };
  try {
    module = await import(pathToFileURL(file).href);
  } catch (error) {
    return { file, message: await describeLoadFailure(error, file) };
  }
  const problem = shapeProblem(module.default);
  if (problem !== undefined) return { file, message: `${file} ${problem}` };
  return { file, plugin: module.default as AnyPlugin };
}
