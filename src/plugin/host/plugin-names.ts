import type { Config } from '../../platform/config/config.ts';
import { oldSections } from '../../platform/config/jupyterhub-settings.ts';
import { sectionsWith } from '../../platform/config/sections.ts';
import { closestName, didYouMean } from '../../platform/config/suggestion.ts';
import type { ConfigProblem } from '../../platform/errors.ts';
import type { AnyPlugin, PluginKind, PluginLoader, PluginLookup } from './plugin-loader.ts';

/**
 * Finds sections that belong to no plugin. Only for those must every plugin be loaded. Where a plugin
 * that the configuration names cannot be read, any section may be that plugin's: nothing is said of it.
 */
export async function findUnknownSections(
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
      const message = `is not a section of the hub or of a plugin${suggestion}${unread}`;
      return [{ path: name, message }];
    });
}

/** Names of sections end alike: what is alike in them must not make one pass for another. */
function sectionMeantBy(name: string, known: readonly string[]): string {
  const renamed = oldSections[name];
  if (renamed !== undefined && known.includes(renamed)) return `; did you mean \`${renamed}\`?`;
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
  'spawn-hook': { article: 'a hook', setting: 'Spawner.hooks' },
} as const satisfies Readonly<Record<PluginKind, object>>;

export function describeLookup(
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
