import { inspect } from 'node:util';
import { z } from 'zod';
import { builtinSections } from '../config/sections.ts';
import type { ContractVersion } from './authenticator.ts';

const functionValue = z.custom((value) => typeof value === 'function', 'must be a function');

/** An older zod has no "_zod"; the JSON Schema of the configuration could not be made of it. */
const schemaValue = z.custom(
  (value) => typeof value === 'object' && value !== null && 'safeParse' in value && '_zod' in value,
  'must be a schema made with zod',
);

/** Versions of the contract whose plugins this hub can use. */
const usableContracts: readonly ContractVersion[] = [1];

const pluginShape = z.object({
  kind: z.enum(
    ['authenticator', 'spawner', 'spawn-hook'],
    'must be "authenticator", "spawner" or "spawn-hook"',
  ),
  name: z
    .string('must be text')
    .regex(/^[A-Za-z0-9][A-Za-z0-9_-]*$/, 'may hold letters, digits, _ and -'),
  section: z
    .string('must be text')
    .regex(/^[A-Z][A-Za-z0-9]*$/, 'must begin with a capital letter, such as "MyAuthenticator"')
    .refine(
      (section) => !Object.hasOwn(builtinSections, section),
      "is one of the hub's own sections",
    ),
  optionsSchema: schemaValue,
  profileOptionsSchema: schemaValue.optional(),
  secretOptions: z.array(z.string(), 'must be a list of names').optional(),
  findProblems: functionValue.optional(),
  create: functionValue,
});

/** Says why a value is not a plugin; undefined when it looks like one. */
export function shapeProblem(value: unknown): string | undefined {
  if (value === undefined) return 'is not a plugin: it has no default export';
  const contract = z.object({ contract: z.unknown() }).safeParse(value).data?.contract ?? 1;
  if (!usableContracts.some((usable) => usable === contract)) {
    return `is written for version ${inspect(contract, { depth: 0 })} of the plugin contract, and this hub takes version ${usableContracts.join(' or ')}; install a release of the plugin for that version, or a hub for this one`;
  }
  const result = pluginShape.safeParse(value);
  if (result.success) return undefined;
  const problems = result.error.issues
    .map(({ path, message }) =>
      path.length === 0 ? 'its default export must be an object' : `${path.join('.')} ${message}`,
    )
    .join('; ');
  return `is not a plugin: ${problems}`;
}
