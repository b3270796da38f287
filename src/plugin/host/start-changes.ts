import { z } from 'zod';
import { describeIssues } from '../../platform/config/schema-problems.ts';
import type { ChangeableSettings, StartChanges } from './spawn-hook.ts';

const text = z.string().regex(/^[^\0]*$/, 'must hold no NUL character');
const absolutePath = text.regex(/^\//, 'must be an absolute path');
const cores = z.number().positive();

const changesSchema = z.strictObject({
  command: z
    .array(text)
    .min(1)
    .refine((words) => words[0] !== '', 'must begin with a program')
    .optional(),
  environment: z
    .record(
      z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'is not a name for an environment variable'),
      text.nullable(),
    )
    .optional(),
  workingDirectory: absolutePath.optional(),
  limits: z
    .strictObject({
      memoryBytes: z.int().positive().nullish(),
      cpuCores: cores.nullish(),
      gpus: z.int().nonnegative().nullish(),
      processes: z.int().positive().nullish(),
    })
    .optional(),
  guarantees: z
    .strictObject({ memoryBytes: z.int().positive().nullish(), cpuCores: cores.nullish() })
    .optional(),
  volumes: z
    .array(
      z.strictObject({
        source: text.min(1),
        target: absolutePath,
        readOnly: z.boolean(),
        owner: z.enum(['user', 'server']).optional(),
      }),
    )
    .refine(
      (volumes) => new Set(volumes.map(({ target }) => target)).size === volumes.length,
      'must have a target of its own for each',
    )
    .optional(),
});

/** Changes what a server is started with. Throws an Error that says what of the changes cannot be. */
export function applyStartChanges<Settings extends ChangeableSettings>(
  settings: Settings,
  changes: unknown,
): Settings {
  if (changes === undefined || changes === null) return settings;
  const result = changesSchema.safeParse(changes);
  if (!result.success) {
    const [problem] = describeIssues(result.error.issues, changesSchema);
    throw new Error(problem === undefined ? 'unusable' : `${problem.path} ${problem.message}`);
  }
  const { command, workingDirectory, volumes, environment, limits, guarantees } =
    result.data as StartChanges;
  return {
    ...settings,
    ...(command !== undefined && { command }),
    ...(workingDirectory !== undefined && { workingDirectory }),
    ...(volumes !== undefined && { volumes }),
    environment: merge(settings.environment, environment),
    limits: merge(settings.limits, limits),
    guarantees: merge(settings.guarantees, guarantees),
  };
}

/** Sets what the changes name, and removes what they set to null. */
function merge<Values extends object>(values: Values, changes: object = {}): Values {
  const merged = Object.entries({ ...values, ...changes });
  return Object.fromEntries(
    merged.filter(([, value]) => value !== null && value !== undefined),
  ) as Values;
}
