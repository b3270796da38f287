import type { HubVariables } from '../../platform/protocol/hub-variables.ts';
import type { SystemUser } from './system-user.ts';

/** Variables of the hub's own environment that a child gets, beside every `LC_…`. */
export const inheritedVariables: readonly string[] = [
  'PATH',
  'LANG',
  'LANGUAGE',
  'TZ',
  'HOME',
  'USER',
  'LOGNAME',
  'SHELL',
  'TMPDIR',
  'LD_LIBRARY_PATH',
  'PYTHONPATH',
  'VIRTUAL_ENV',
  'CONDA_ROOT',
  'CONDA_DEFAULT_ENV',
];

export interface ChildEnvironmentOptions {
  /** The hub's own environment; only what is allowed is taken from it. */
  readonly inherited: Readonly<Record<string, string | undefined>>;
  /** Names taken from `inherited`; `LC_…` are taken in any case. */
  readonly keep?: readonly string[];
  readonly variables: HubVariables;
  /** `Hub.environment_prefixes`. */
  readonly prefixes: readonly string[];
  /** Path of the base URL, what `JUPYTERHUB_BASE_URL` holds. */
  readonly basePath: string;
  /** Account the child runs as, when it is not the hub's own. */
  readonly user?: SystemUser | undefined;
  /** From the configuration; wins over everything else. */
  readonly extra?: Readonly<Record<string, string>>;
}

/**
 * Builds the whole environment of a child: an allow-list of the hub's own, the hub's variables under
 * every prefix, and the configured ones. Nothing else of the hub's environment reaches a child.
 */
export function childEnvironment(options: ChildEnvironmentOptions): Record<string, string> {
  const {
    inherited,
    keep = inheritedVariables,
    variables,
    prefixes,
    basePath,
    user,
    extra,
  } = options;
  return {
    ...inheritedPart(inherited, keep),
    ...(user === undefined ? {} : userPart(user)),
    ...prefixVariables(variables, prefixes, basePath),
    ...extra,
  };
}

/** Passes each variable under every prefix: `API_TOKEN` becomes `HUB_API_TOKEN` and so on. */
export function prefixVariables(
  variables: HubVariables,
  prefixes: readonly string[],
  basePath: string,
): Record<string, string> {
  const prefixed: Record<string, string> = {};
  for (const prefix of prefixes) {
    for (const [name, value] of Object.entries(variables)) {
      if (value === undefined) continue;
      // Software written for JupyterHub takes this one variable as a path, the specification as a URL.
      const isPath = name === 'BASE_URL' && prefix === 'JUPYTERHUB';
      prefixed[`${prefix}_${name}`] = isPath ? basePath : value;
    }
  }
  return prefixed;
}

function inheritedPart(
  inherited: Readonly<Record<string, string | undefined>>,
  keep: readonly string[],
): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const [name, value] of Object.entries(inherited)) {
    if (value !== undefined && (keep.includes(name) || name.startsWith('LC_'))) kept[name] = value;
  }
  return kept;
}

function userPart({ name, home, shell }: SystemUser): Record<string, string> {
  return { USER: name, LOGNAME: name, HOME: home, SHELL: shell };
}
