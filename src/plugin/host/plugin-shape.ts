import { inspect } from 'node:util';
import { z } from 'zod';
import { builtinSections } from '../../platform/config/sections.ts';
import type { ContractVersion } from './authenticator.ts';

const method = z.custom((value) => typeof value === 'function', 'must be a function');
const hook = method.optional();
const text = z.string().min(1);
const label = z.union([text, z.record(z.string(), text)]);

/** An older zod has no "_zod"; the JSON Schema of the configuration could not be made of it. */
const schema = z.custom(
  (value) => typeof value === 'object' && value !== null && 'safeParse' in value && '_zod' in value,
  'must be a schema made with zod',
);

/** Versions of the contract whose plugins this hub can use. */
const usableContracts: readonly ContractVersion[] = [1];

const pluginShape = z.object({
  kind: z.enum(['authenticator', 'spawner', 'spawn-hook']),
  name: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_-]*$/, 'may hold letters, digits, _ and -'),
  section: z
    .string()
    .regex(/^[A-Z][A-Za-z0-9]*$/, 'must begin with a capital letter, such as "MyAuthenticator"')
    .refine(
      (section) => !Object.hasOwn(builtinSections, section),
      "is one of the hub's own sections",
    ),
  optionsSchema: schema,
  profileOptionsSchema: schema.optional(),
  secretOptions: z.array(z.string()).optional(),
  findProblems: hook,
  create: method,
});

const loginField = z.object({
  name: text,
  label,
  type: z.enum(['text', 'password', 'one-time-code']),
  autocomplete: z.string(),
  optional: z.boolean().optional(),
});

const authenticatorHooks = {
  ownsAccounts: z.boolean().optional(),
  open: hook,
  refreshUser: hook,
  logoutUrl: hook,
  beforeSpawn: hook,
  afterStop: hook,
  deleteUser: hook,
  status: hook,
  reach: hook,
};

const authenticatorShapes = {
  form: z.object({
    login: z.object({
      label,
      fields: z
        .array(loginField)
        .refine(
          (fields) => fields.some(({ name }) => name === 'username'),
          'must hold one called "username", by which failed attempts are counted',
        ),
    }),
    authenticate: method,
    passwordProblem: hook,
    ...authenticatorHooks,
  }),
  external: z.object({
    login: z.object({ label }),
    beginLogin: method,
    completeLogin: method,
    verifyLogoutToken: hook,
    ...authenticatorHooks,
  }),
  request: z.object({ login: z.object({ label }), identify: method, ...authenticatorHooks }),
} as const;

const loginShape = z.object({
  login: z.object({ kind: z.enum(['form', 'external', 'request']) }),
});

const spawnerShape = z.object({
  start: method,
  stop: method,
  poll: method,
  restore: method,
  open: hook,
  resume: hook,
  discard: hook,
  delete: hook,
  usage: hook,
  homeSpace: hook,
  pause: hook,
  unpause: hook,
  examine: hook,
  needsAccounts: z.boolean().optional(),
  needsReachableHub: z.boolean().optional(),
  reach: z.enum(['machine', 'anywhere']).optional(),
});

const spawnHookShape = z
  .object({ open: hook, beforeStart: hook, afterStop: hook })
  .refine(
    (created) => created.beforeStart !== undefined || created.afterStop !== undefined,
    'beforeStart and afterStop are missing',
  );

/** Says why the default export of a file is not a plugin; undefined when it looks like one. */
export function shapeProblem(value: unknown): string | undefined {
  if (value === undefined) return 'is not a plugin: it has no default export';
  const contract = z.object({ contract: z.unknown() }).safeParse(value).data?.contract ?? 1;
  if (!usableContracts.some((usable) => usable === contract)) {
    return `is written for version ${inspect(contract, { depth: 0 })} of the plugin contract, and this hub takes version ${usableContracts.join(' or ')}; install a release of the plugin for that version, or a hub for this one`;
  }
  return problemsOf(pluginShape, value, 'is not a plugin');
}

/** Says why what `create` returned is not an authenticator; undefined when it is one. */
export function authenticatorProblem(value: unknown): string | undefined {
  const kind = loginShape.safeParse(value).data?.login.kind;
  const shape = kind === undefined ? loginShape : authenticatorShapes[kind];
  return problemsOf(shape, value, 'creates no authenticator');
}

/** Says why what `create` returned is not a spawner; undefined when it is one. */
export function spawnerProblem(value: unknown): string | undefined {
  return problemsOf(spawnerShape, value, 'creates no spawner');
}

/** Says why what `create` returned is not a hook; undefined when it is one. */
export function spawnHookProblem(value: unknown): string | undefined {
  return problemsOf(spawnHookShape, value, 'creates no hook');
}

function problemsOf(shape: z.ZodType, value: unknown, what: string): string | undefined {
  const problems = shape
    .safeParse(value)
    .error?.issues.map(({ path, message }) =>
      path.length === 0 ? message : `${z.core.toDotPath(path)}: ${message}`,
    );
  return problems && `${what}: ${problems.join('; ')}`;
}
