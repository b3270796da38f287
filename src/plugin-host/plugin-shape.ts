import { z } from 'zod';

const functionValue = z.custom((value) => typeof value === 'function', 'must be a function');

const ownSections = ['Hub', 'Authenticator', 'Spawner', 'Proxy'];

const pluginShape = z.object({
  kind: z.enum(['authenticator', 'spawner'], 'must be "authenticator" or "spawner"'),
  name: z
    .string('must be text')
    .regex(/^[A-Za-z0-9][A-Za-z0-9_-]*$/, 'may hold letters, digits, _ and -'),
  section: z
    .string('must be text')
    .regex(/^[A-Z][A-Za-z0-9]*$/, 'must begin with a capital letter, such as "MyAuthenticator"')
    .refine((section) => !ownSections.includes(section), "is one of the hub's own sections"),
  optionsSchema: z.custom(
    (value) => typeof value === 'object' && value !== null && 'safeParse' in value,
    'must be a zod schema',
  ),
  secretOptions: z.array(z.string(), 'must be a list of names').optional(),
  findProblems: functionValue.optional(),
  create: functionValue,
});

/** Says why a value is not a plugin; undefined when it looks like one. */
export function shapeProblem(value: unknown): string | undefined {
  if (value === undefined) return 'it has no default export';
  const result = pluginShape.safeParse(value);
  if (result.success) return undefined;
  return result.error.issues
    .map(({ path, message }) =>
      path.length === 0 ? 'its default export must be an object' : `${path.join('.')} ${message}`,
    )
    .join('; ');
}
