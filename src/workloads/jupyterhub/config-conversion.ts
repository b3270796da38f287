import { oldSections, oldSettings } from '../../platform/config/jupyterhub-settings.ts';
import { convertValue, pluginOf } from './config-values.ts';
import type { ImportNote } from './plan-servers.ts';
import { type PythonConfig, pythonIn } from './python-config.ts';

type Sections = Record<string, Record<string, unknown>>;

export interface ConvertedConfig {
  readonly config: Readonly<Sections>;
  readonly changed: readonly ImportNote[];
  readonly left: readonly ImportNote[];
}

/** The authenticator of a JupyterHub that names none. */
const standardClass = 'pam';

/** The settings that there are, by section. */
export type KnownSettings = Readonly<Record<string, ReadonlySet<string>>>;

/**
 * Writes a configuration of JupyterHub as one of the hub, by the table of old settings. What has no counterpart, or is
 * Python, is noted.
 */
export function convertConfig(old: PythonConfig, known: KnownSettings): ConvertedConfig {
  const config: Sections = {
    Hub: {
      // As programs, users and links know it.
      environment_prefixes: ['HUB', 'JUPYTERHUB'],
      redirect_to_server: true,
      authenticator_class: standardClass,
    },
  };
  const changed: ImportNote[] = [];
  const left: ImportNote[] = [];
  const classes = {
    Authenticator: sectionOf(
      old['JupyterHub']?.['authenticator_class'] ?? standardClass,
      'Authenticator',
      known,
    ),
    Spawner: sectionOf(old['JupyterHub']?.['spawner_class'], 'Spawner', known),
  };

  for (const [section, settings] of Object.entries(old)) {
    for (const [key, value] of Object.entries(settings)) {
      const path = `${section}.${key}`;
      const row = rowOf(section, key);
      const target =
        row !== undefined && 'here' in row ? row.here : placeOf(section, key, classes, known);
      const converted = convertValue(path, target, value, old);
      changed.push(...(converted.changed ?? []));
      for (const [name, each] of Object.entries(converted.settings)) {
        const python = pythonIn(each);
        if (python !== undefined) leave(path, `it is Python (${python})`, row);
        else set(name, each);
      }
      const python = pythonIn(value);
      if (Object.keys(converted.settings).length === 0 && python !== undefined)
        leave(path, `it is Python (${python})`, row);
      else if (Object.keys(converted.settings).length === 0)
        leave(path, converted.why ?? 'there is no such setting here', row);
    }
  }
  return { config, changed, left };

  function leave(what: string, why: string, row: ReturnType<typeof rowOf>): void {
    left.push({ what, why, ...(row !== undefined && 'instead' in row && { todo: row.instead }) });
  }

  function set(name: string, value: unknown): void {
    const [section = '', key = ''] = name.split(/\.(.*)/s, 2);
    config[section] = { ...config[section], [key]: value };
  }
}

/** What the table says of a setting, also where it stands under a subclass. */
function rowOf(section: string, key: string) {
  const base = /(OAuthenticator|Authenticator|Spawner)$/.exec(section)?.[1];
  const places = [section, base, base === 'OAuthenticator' ? 'Authenticator' : undefined];
  return places.flatMap((each) => oldSettings[`${each}.${key}`] ?? [])[0];
}

/** Where a setting of the same name is: of the section, of the plugin that is used, or of all plugins. */
function placeOf(
  section: string,
  key: string,
  classes: Readonly<Record<string, string | undefined>>,
  known: KnownSettings,
): string | undefined {
  const base = /(Authenticator|Spawner)$/.exec(section)?.[1] ?? '';
  const places = [oldSections[section] ?? section, classes[base], base];
  const place = places.find((each) => known[each ?? '']?.has(key));
  return place === undefined ? undefined : `${place}.${key}`;
}

function sectionOf(
  value: unknown,
  kind: 'Authenticator' | 'Spawner',
  known: KnownSettings,
): string | undefined {
  const wanted = `${pluginOf(kind, value)?.replaceAll('-', '')}${kind}`.toLowerCase();
  return Object.keys(known).find((section) => section.toLowerCase() === wanted);
}
