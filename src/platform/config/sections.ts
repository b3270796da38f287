import { z } from 'zod';
import type { ConfigProblem } from '../errors.ts';
import { acmeSection } from './acme-schema.ts';
import { hubSection } from './hub-schema.ts';
import { formatPath } from './problem-path.ts';
import { recover } from './recover.ts';
import { describeIssues } from './schema-problems.ts';
import { authenticatorSection, proxySection, spawnerSection } from './sections-schema.ts';

/** The sections of the hub itself; every other one belongs to a plugin. */
export const builtinSections = {
  Hub: hubSection,
  Authenticator: authenticatorSection,
  Spawner: spawnerSection,
  Proxy: proxySection,
} as const;

type SectionName = keyof typeof builtinSections;

export type ParsedSections = {
  readonly [Name in SectionName]: z.output<(typeof builtinSections)[Name]>;
} & { readonly pluginSections: Readonly<Record<string, unknown>> };

export interface SectionsResult {
  /** What is sound of the sections, defaults applied; undefined when nothing is. */
  readonly parsed: ParsedSections | undefined;
  readonly problems: readonly ConfigProblem[];
  /** Translates a path in `parsed` to the file: entries that were no use are missing in `parsed`. */
  originalPath(path: string): string;
}

/** Parses every section on its own, so that a slip in one leaves the others to be checked. */
export function parseSections(root: unknown): SectionsResult {
  const file = z.record(z.string(), z.unknown()).safeParse(root);
  if (!file.success) {
    const problems = [{ path: '', message: 'must hold one object with the sections in it' }];
    return { parsed: undefined, problems, originalPath: (path) => path };
  }

  const problems: ConfigProblem[] = [];
  const { $schema, Hub, Authenticator, Spawner, Proxy: proxy, ...pluginSections } = file.data;
  if ($schema !== undefined && typeof $schema !== 'string') {
    problems.push({ path: '$schema', message: 'must be text' });
  }
  for (const [name, section] of Object.entries(pluginSections)) {
    if (typeof section !== 'object' || section === null || Array.isArray(section)) {
      problems.push({ path: formatPath([name]), message: 'must be an object' });
    }
  }

  const translations = new Map<string, (path: string) => string>();
  function parse<Name extends SectionName>(name: Name, input: unknown = {}) {
    const schema: z.ZodType<ParsedSections[Name]> = builtinSections[name] as never;
    const result = schema.safeParse(input);
    if (result.success) return result.data;
    problems.push(...explainMisplaced(describeIssues(result.error.issues, schema, [name])));
    const rest = recover(schema, input);
    if (rest === undefined) return schema.parse({});
    translations.set(name, rest.originalPath);
    return rest.output;
  }

  const parsed: ParsedSections = {
    Hub: parse('Hub', withHttps(Hub)),
    Authenticator: parse('Authenticator', Authenticator),
    Spawner: parse('Spawner', Spawner),
    Proxy: parse('Proxy', proxy),
    pluginSections,
  };
  return {
    parsed,
    problems,
    originalPath(path) {
      const [, section = '', rest = ''] = /^([^.[]*)\.?(.*)$/.exec(path) ?? [];
      const translate = translations.get(section);
      return translate === undefined || rest === '' ? path : `${section}.${translate(rest)}`;
    },
  };
}

/** With certificates by ACME, which are for public names, the hub listens for all by https. */
function withHttps(hub: unknown): unknown {
  if (typeof hub !== 'object' || hub === null || !('acme' in hub)) return hub;
  if (!acmeSection.safeParse(hub.acme).success) return hub;
  return { bind_url: 'https://0.0.0.0:443/', ...hub };
}

/** Adds where an unknown key would be right: `Hub.allow_all` belongs in `Authenticator`. */
function explainMisplaced(problems: readonly ConfigProblem[]): ConfigProblem[] {
  return problems.map((problem) => {
    const [, section, key = ''] = /^(\w+)\.(\w+)$/.exec(problem.path) ?? [];
    if (problem.message !== 'is not a known setting') return problem;
    const home = sectionsWith(key).find((name) => name !== section);
    return home === undefined ? problem : { ...problem, message: `belongs in the section ${home}` };
  });
}

/** Names the hub's own sections that have a setting of this name. */
export function sectionsWith(key: string): string[] {
  return Object.entries(builtinSections)
    .filter(([, schema]) => Object.hasOwn(schema.shape, key))
    .map(([name]) => name);
}
