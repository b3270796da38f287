import type { ConfigProblem } from '../errors.ts';
import { formatPath } from './problem-path.ts';
import { resolveSecret, type SecretSources } from './secrets.ts';

/** Where the hub's own sections may hold a reference; `*` is every entry of a list, `**` of an object. */
const secretPaths: readonly (readonly string[])[] = [
  ['Hub', 'acme', 'email'],
  ['Hub', 'acme', 'external_account', 'key'],
  ['Hub', 'backup', 'passphrase'],
  ['Hub', 'cookie_secret'],
  ['Hub', 'cookie_secret', '*'],
  ['Hub', 'database_url'],
  // No secrets, but of each container or installation: all of them can share one file.
  ['Hub', 'instance_url'],
  ['Hub', 'public_url'],
  ['Hub', 'keyv_url'],
  ['Hub', 'proxy_api', 'auth_token'],
  ['Hub', 'services', '*', 'api_token'],
  ['Hub', 'tracing', 'headers', '**'],
];

export interface ResolvedSecrets {
  /** A copy in which text stands for every reference, and nothing for those that lead nowhere. */
  readonly value: unknown;
  readonly problems: readonly ConfigProblem[];
  readonly warnings: readonly ConfigProblem[];
}

/** Resolves the secrets of the hub's own sections; those of plugins wait for the plugin to name them. */
export function resolveKnownSecrets(value: unknown, sources: SecretSources): ResolvedSecrets {
  return resolveSecretsAt(value, secretPaths, { sources, prefix: [] });
}

/** Resolves the references to secrets that stand at the given paths of a value. */
export function resolveSecretsAt(
  value: unknown,
  paths: readonly (readonly string[])[],
  { sources, prefix }: { sources: SecretSources; prefix: readonly PropertyKey[] },
): ResolvedSecrets {
  const copy = structuredClone(value);
  const problems: ConfigProblem[] = [];
  const warnings: ConfigProblem[] = [];
  for (const steps of paths.flatMap((pattern) => expand(copy, pattern))) {
    const holder = steps.slice(0, -1).reduce<unknown>(childOf, copy);
    const last = steps.at(-1);
    if (last === undefined || typeof holder !== 'object' || holder === null) continue;
    const resolved = resolveSecret(childOf(holder, last), sources);
    if (resolved === undefined) continue;
    const path = formatPath([...prefix, ...steps]);
    if (resolved.outcome === 'unresolved') {
      problems.push({ path, message: resolved.message });
      // The entries of a list keep their places.
      if (Array.isArray(holder)) Reflect.set(holder, last, '-');
      else Reflect.deleteProperty(holder, last);
      continue;
    }
    Reflect.set(holder, last, resolved.value);
    if (resolved.warning !== undefined) warnings.push({ path, message: resolved.warning });
  }
  return { value: copy, problems, warnings };
}

function expand(root: unknown, pattern: readonly string[]): PropertyKey[][] {
  let reached: { steps: PropertyKey[]; at: unknown }[] = [{ steps: [], at: root }];
  for (const step of pattern) {
    reached = reached.flatMap(({ steps, at }) => {
      const keys = step.startsWith('*') ? keysOf(at, step === '*') : [step];
      return keys.map((key) => ({ steps: [...steps, key], at: childOf(at, key) }));
    });
  }
  return reached.map(({ steps }) => steps);
}

function keysOf(holder: unknown, isList: boolean): PropertyKey[] {
  if (Array.isArray(holder) !== isList || typeof holder !== 'object' || holder === null) return [];
  return isList ? [...(holder as readonly unknown[]).keys()] : Object.keys(holder);
}

function childOf(holder: unknown, step: PropertyKey): unknown {
  if (typeof holder !== 'object' || holder === null || !Object.hasOwn(holder, step))
    return undefined;
  return Reflect.get(holder, step);
}
