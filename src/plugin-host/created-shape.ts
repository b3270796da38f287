import { z } from 'zod';

const text = z.string('must be text').min(1, 'must not be empty');
const label = z.union(
  [text, z.record(z.string(), text)],
  'must be text, or an object with one for each language',
);
const method = z.custom((value) => typeof value === 'function', 'is missing');
const hook = z.custom((value) => typeof value === 'function', 'must be a function').optional();

const fields = z
  .array(
    z.object(
      {
        name: text,
        label,
        type: z.enum(['text', 'password', 'one-time-code']),
        autocomplete: z.string('must be text'),
        optional: z.boolean().optional(),
      },
      'must be an object',
    ),
    'must be a list',
  )
  .refine(
    (list) => list.some(({ name }) => name === 'username'),
    'must hold one called "username", by which failed attempts are counted',
  );

const hooks = {
  ownsAccounts: z.boolean('must be true or false').optional(),
  open: hook,
  refreshUser: hook,
  logoutUrl: hook,
  beforeSpawn: hook,
  afterStop: hook,
  deleteUser: hook,
  status: hook,
  reach: hook,
};

const login = <Kind extends string>(kind: Kind, more: z.core.$ZodShape = {}) =>
  z.object({ kind: z.literal(kind), label, ...more });

const authenticatorShapes = {
  form: z.object({
    login: login('form', { fields }),
    authenticate: method,
    passwordProblem: hook,
    ...hooks,
  }),
  external: z.object({
    login: login('external'),
    beginLogin: method,
    completeLogin: method,
    verifyLogoutToken: hook,
    ...hooks,
  }),
  request: z.object({ login: login('request'), identify: method, ...hooks }),
} as const;

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
  examine: hook,
  needsAccounts: z.boolean('must be true or false').optional(),
  needsReachableHub: z.boolean('must be true or false').optional(),
  reach: z.enum(['machine', 'anywhere'], 'must be "machine" or "anywhere"').optional(),
});

const spawnHookShape = z
  .object({ open: hook, beforeStart: hook, afterStop: hook })
  .refine(
    (created) => created.beforeStart !== undefined || created.afterStop !== undefined,
    'beforeStart and afterStop are missing',
  );

/** Says why what `create` returned is not an authenticator; undefined when it is one. */
export function authenticatorProblem(value: unknown): string | undefined {
  const kind = z.object({ login: z.object({ kind: z.string() }) }).safeParse(value).data
    ?.login.kind;
  if (kind === undefined || !Object.hasOwn(authenticatorShapes, kind)) {
    return 'creates no authenticator: login.kind must be "form", "external" or "request"';
  }
  const shape = authenticatorShapes[kind as keyof typeof authenticatorShapes];
  const problems = problemsOf(shape.safeParse(value));
  return problems && `creates an authenticator with login.kind "${kind}" in which ${problems}`;
}

/** Says why what `create` returned is not a spawner; undefined when it is one. */
export function spawnerProblem(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null) {
    return 'creates no spawner: create must return an object';
  }
  const problems = problemsOf(spawnerShape.safeParse(value));
  return problems && `creates a spawner in which ${problems}`;
}

/** Says why what `create` returned is not a hook; undefined when it is one. */
export function spawnHookProblem(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null) {
    return 'creates no hook: create must return an object';
  }
  const problems = problemsOf(spawnHookShape.safeParse(value));
  return problems && `creates a hook in which ${problems}`;
}

function problemsOf(result: z.ZodSafeParseResult<unknown>): string | undefined {
  return result.error?.issues
    .map(({ path, message }) =>
      path.length === 0 ? message : `${z.core.toDotPath(path)} ${message}`,
    )
    .join(' and ');
}
