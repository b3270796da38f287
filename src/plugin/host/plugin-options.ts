import type { z } from 'zod';
import { resolveSecretsAt } from '../../platform/config/known-secrets.ts';
import { formatPath } from '../../platform/config/problem-path.ts';
import { describeIssues } from '../../platform/config/schema-problems.ts';
import type { SecretSources } from '../../platform/config/secrets.ts';
import type { ConfigProblem } from '../../platform/errors.ts';
import type { OptionProblem } from './authenticator.ts';
import type { AnyPlugin } from './plugin-loader.ts';
import type { SpawnerPlugin } from './spawner.ts';

/** The options of a plugin as they stand in the configuration. */
export interface PluginOptionsSource {
  /** The section that all entries of the plugin share. */
  readonly shared: unknown;
  /** Options of one entry, over those of the section. */
  readonly own: Readonly<Record<string, unknown>>;
  /** Path of that entry; undefined when it has no options of its own. */
  readonly ownPath: readonly PropertyKey[] | undefined;
}

export interface CheckedPluginOptions {
  /** What the plugin's schema made of them; undefined when there are problems. */
  readonly options: unknown;
  readonly problems: readonly ConfigProblem[];
  readonly warnings: readonly ConfigProblem[];
}

/** Resolves the secrets among a plugin's options and checks them with the plugin's own schema. */
export function checkPluginOptions(
  plugin: Pick<AnyPlugin, 'section' | 'optionsSchema' | 'secretOptions'>,
  source: PluginOptionsSource,
  sources: SecretSources,
): CheckedPluginOptions {
  const paths = (plugin.secretOptions ?? []).map((option) => option.split('.'));
  const shared = resolveSecretsAt(source.shared ?? {}, paths, {
    sources,
    prefix: [plugin.section],
  });
  const own = resolveSecretsAt(source.own, paths, { sources, prefix: source.ownPath ?? [] });
  const unresolved = [...shared.problems, ...own.problems];
  const warnings = [...shared.warnings, ...own.warnings];

  const input = { ...(shared.value as object), ...(own.value as object) };
  const result = plugin.optionsSchema.safeParse(input);
  if (result.success && unresolved.length === 0) {
    return { options: result.data, problems: [], warnings };
  }
  const issues = result.success ? [] : result.error.issues.flatMap(oneKeyEach);
  const refused = issues.flatMap((issue) => {
    const [option] = issue.code === 'unrecognized_keys' ? issue.keys : issue.path;
    return describeIssues([issue], plugin.optionsSchema, optionPrefix(plugin, source, option));
  });
  // An unresolved secret is missing for the schema, too: that would be said twice.
  const unresolvedPaths = new Set(unresolved.map(({ path }) => path));
  const others = refused.filter(({ path }) => !unresolvedPaths.has(path));
  return { options: undefined, problems: [...unresolved, ...others], warnings };
}

/** Unknown keys come in one issue, but may stand in the section or in the entry. */
function oneKeyEach(issue: z.core.$ZodIssue): z.core.$ZodIssue[] {
  return issue.code === 'unrecognized_keys'
    ? issue.keys.map((key) => ({ ...issue, keys: [key] }))
    : [issue];
}

/**
 * Checks the `options` of every profile with the spawner's own schema. Where there are no profiles, those
 * of none: what the schema makes of an empty object.
 */
export function checkProfileOptions(
  { name, profileOptionsSchema }: Pick<SpawnerPlugin, 'name' | 'profileOptionsSchema'>,
  profiles: readonly ProfileToCheck[],
): {
  readonly profileOptions: ReadonlyMap<string | undefined, unknown>;
  readonly problems: readonly ConfigProblem[];
} {
  const profileOptions = new Map<string | undefined, unknown>();
  const problems: ConfigProblem[] = [];
  const none: ProfileToCheck = { name: undefined, path: ['Spawner'] };
  const all = profiles.length > 0 ? profiles : [none];
  for (const profile of all) {
    const path = [...profile.path, 'options'];
    const options = profile.options ?? {};
    if (profileOptionsSchema === undefined) {
      profileOptions.set(profile.name, {});
      if (profile.options === undefined) continue;
      const message = `the spawner "${name}" takes no options of a profile`;
      problems.push({ path: formatPath(path), message });
      continue;
    }
    const result = profileOptionsSchema.safeParse(options);
    if (result.success) profileOptions.set(profile.name, result.data);
    else problems.push(...describeIssues(result.error.issues, profileOptionsSchema, path));
  }
  return { profileOptions, problems };
}

/** A profile of the configuration, and where it stands. */
export interface ProfileToCheck {
  readonly name: string | undefined;
  readonly options?: Readonly<Record<string, unknown>> | undefined;
  readonly path: readonly PropertyKey[];
}

/** Puts what a plugin found itself where the option stands in the configuration. */
export function locateOptionProblem(
  plugin: Pick<AnyPlugin, 'section'>,
  source: PluginOptionsSource,
  { option, message }: OptionProblem,
): ConfigProblem {
  const steps = option === '' ? [] : option.split('.');
  return { path: formatPath([...optionPrefix(plugin, source, steps[0]), ...steps]), message };
}

/** An option belongs to the entry that sets it; one that no entry sets, to the entry when there is one. */
function optionPrefix(
  { section }: Pick<AnyPlugin, 'section'>,
  { shared, own, ownPath }: PluginOptionsSource,
  option: PropertyKey | undefined,
): readonly PropertyKey[] {
  if (ownPath === undefined) return [section];
  const isShared =
    option !== undefined &&
    !Object.hasOwn(own, option) &&
    typeof shared === 'object' &&
    shared !== null &&
    Object.hasOwn(shared, option);
  return isShared ? [section] : ownPath;
}
