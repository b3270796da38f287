import { withinTime } from '../../platform/concurrency/time-limit.ts';
import type { AuthenticatorEntry } from '../../platform/config/config.ts';
import type { PluginLog } from '../../platform/logging/plugin-log.ts';
import type {
  Authenticator,
  AuthenticatorHost,
  AuthenticatorPlugin,
  PluginSurroundings,
} from './authenticator.ts';
import type { Finding } from './finding.ts';
import { describeThrown } from './load-failure.ts';
import { authenticatorProblem, spawnerProblem, spawnHookProblem } from './plugin-shape.ts';
import type { SpawnHook, SpawnHookHost, SpawnHookPlugin } from './spawn-hook.ts';
import type { Spawner, SpawnerHost, SpawnerPlugin } from './spawner.ts';

/** A configured authenticator, ready to be created. */
export interface PreparedAuthenticator {
  readonly entry: AuthenticatorEntry;
  readonly plugin: AuthenticatorPlugin;
  readonly file: string;
  readonly options: unknown;
  readonly surroundings: PluginSurroundings & Pick<AuthenticatorHost, 'callbackUrl' | 'shared'>;
}

export interface PreparedSpawner {
  /** Its name among the configured spawners. */
  readonly name: string;
  readonly plugin: SpawnerPlugin;
  readonly file: string;
  readonly options: unknown;
  /** `options` of each profile as the plugin parsed them, by its name; by undefined, of no profile. */
  readonly profileOptions: ReadonlyMap<string | undefined, unknown>;
  readonly surroundings: PluginSurroundings;
}

export interface PreparedSpawnHook {
  /** Its name among the configured hooks. */
  readonly name: string;
  readonly plugin: SpawnHookPlugin;
  readonly file: string;
  readonly options: unknown;
  readonly surroundings: PluginSurroundings;
}

/** What a running hub lends to an authenticator, beside what can be known without one. */
export type AuthenticatorServices = Omit<
  AuthenticatorHost,
  keyof PreparedAuthenticator['surroundings']
>;

/** What a running hub lends to a spawner. */
export type SpawnerServices = Omit<SpawnerHost, keyof PluginSurroundings>;

interface Created {
  open?(known?: Pick<PreparedSpawner, 'profileOptions'>): void | Promise<void>;
  [Symbol.asyncDispose]?(): Promise<void>;
}

/** How long a plugin may take to create something, to open it, and to close it after a trial. */
const createTimeoutMs = 30_000;
const openTimeoutMs = 120_000;

/** Creates and opens an authenticator. Throws an Error that names the plugin's file and the reason. */
export async function startAuthenticator(
  prepared: PreparedAuthenticator,
  services: AuthenticatorServices,
): Promise<Authenticator> {
  return await open(await createAuthenticator(prepared, services), prepared.file);
}

/** Creates and opens a spawner. Throws an Error that names the plugin's file and the reason. */
export async function startSpawner(
  prepared: PreparedSpawner,
  services: SpawnerServices,
): Promise<Spawner> {
  const known = { profileOptions: prepared.profileOptions };
  return await open(await createSpawner(prepared, services), prepared.file, known);
}

/** Creates and opens a hook. Throws an Error that names the plugin's file and the reason. */
export async function startSpawnHook(
  prepared: PreparedSpawnHook,
  services: Pick<SpawnHookHost, 'log'>,
): Promise<SpawnHook> {
  return await open(await createSpawnHook(prepared, services), prepared.file);
}

/**
 * Creates an authenticator for trial, with a host that keeps nothing, and closes it again. Returns
 * what is wrong with the plugin, or undefined.
 */
export async function tryAuthenticator(
  prepared: PreparedAuthenticator,
  options: {
    readonly timeoutMs?: number;
    /** Sees what was created, before it is closed. */
    readonly onCreated?: (created: Authenticator) => void;
  } = {},
): Promise<string | undefined> {
  const { timeoutMs = createTimeoutMs, onCreated } = options;
  const create = async () => {
    const created = await createAuthenticator(prepared, trialServices, timeoutMs);
    onCreated?.(created);
    return created;
  };
  return await tryPlugin(create, prepared.file, timeoutMs);
}

/**
 * Asks the provider of an authenticator, which is created for that and closed again. Returns what is
 * wrong, undefined where all is well, and `unasked` where there is no provider or none that can be asked.
 */
export async function tryProvider(
  prepared: PreparedAuthenticator,
  timeoutMs: number,
): Promise<string | 'unasked' | undefined> {
  try {
    const created = await createAuthenticator(prepared, trialServices);
    try {
      if (created.reach === undefined) return 'unasked';
      const hint = 'the provider gives no answer';
      const signal = AbortSignal.timeout(timeoutMs);
      const work = async () => {
        try {
          await created.reach?.({ signal });
        } catch (error) {
          if (!tellsOfProvider(error)) throw error;
          return error.message.split('\n', 1)[0] || hint;
        }
        return undefined;
      };
      return await call(work, { file: prepared.file, name: 'reach', timeoutMs, hint });
    } finally {
      await created[Symbol.asyncDispose]?.();
    }
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Whether an error says what is wrong with the provider, and not with the code of the plugin. */
function tellsOfProvider(error: unknown): error is Error {
  return error instanceof Error && !(error instanceof TypeError || error instanceof ReferenceError);
}

/** The same for a spawner. */
export async function trySpawner(
  prepared: PreparedSpawner,
  { onCreated }: { readonly onCreated?: (created: Spawner) => void } = {},
): Promise<string | undefined> {
  const create = async () => {
    const created = await createSpawner(prepared, trialSpawnerServices(prepared));
    onCreated?.(created);
    return created;
  };
  return await tryPlugin(create, prepared.file, createTimeoutMs);
}

/**
 * Has a spawner, which is created for that and closed again, look at its engine. Returns undefined where
 * there is no engine to look at. Rejects with an Error that names the plugin's file when it cannot.
 */
export async function examineSpawner(
  prepared: PreparedSpawner,
  timeoutMs: number,
): Promise<readonly Finding[] | undefined> {
  const { file, profileOptions } = prepared;
  const created = await createSpawner(prepared, trialSpawnerServices(prepared));
  try {
    if (created.examine === undefined) return undefined;
    const signal = AbortSignal.timeout(timeoutMs);
    const work = () => created.examine?.({ signal, profileOptions });
    return await call(work, { file, name: 'examine', timeoutMs, hint: 'its engine is slow' });
  } finally {
    await created[Symbol.asyncDispose]?.();
  }
}

function trialSpawnerServices({ surroundings }: PreparedSpawner): SpawnerServices {
  return {
    log: silentLog,
    runtimeDirectory: surroundings.directory,
    hubId: '00000000-0000-4000-8000-000000000000',
    activeServers: notYet('activeServers'),
  };
}

/** Creates a hook for trial, as the others. */
export async function trySpawnHook(prepared: PreparedSpawnHook): Promise<string | undefined> {
  const create = () => createSpawnHook(prepared, { log: silentLog });
  return await tryPlugin(create, prepared.file, createTimeoutMs);
}

async function createAuthenticator(
  { plugin, file, options, surroundings }: PreparedAuthenticator,
  services: AuthenticatorServices,
  timeoutMs = createTimeoutMs,
): Promise<Authenticator> {
  const host = { ...surroundings, ...services };
  return await create(() => plugin.create(options, host), {
    file,
    timeoutMs,
    problemOf: authenticatorProblem,
  });
}

async function createSpawner(
  { plugin, file, options, surroundings }: PreparedSpawner,
  services: SpawnerServices,
): Promise<Spawner> {
  const host = { ...surroundings, ...services };
  return await create(() => plugin.create(options, host), {
    file,
    timeoutMs: createTimeoutMs,
    problemOf: spawnerProblem,
  });
}

async function createSpawnHook(
  { plugin, file, options, surroundings }: PreparedSpawnHook,
  services: Pick<SpawnHookHost, 'log'>,
): Promise<SpawnHook> {
  const host = { ...surroundings, ...services };
  return await create(() => plugin.create(options, host), {
    file,
    timeoutMs: createTimeoutMs,
    problemOf: spawnHookProblem,
  });
}

async function create<Value>(
  make: () => Value | Promise<Value>,
  context: {
    readonly file: string;
    readonly timeoutMs: number;
    readonly problemOf: (created: unknown) => string | undefined;
  },
): Promise<Value> {
  const { file, timeoutMs, problemOf } = context;
  const hint = 'what waits for others belongs in open';
  const created = await call(make, { file, name: 'create', timeoutMs, hint });
  const problem = problemOf(created);
  if (problem !== undefined) throw new Error(`${file} ${problem}`);
  return created;
}

async function open<Value extends Created>(
  created: Value,
  file: string,
  known?: Pick<PreparedSpawner, 'profileOptions'>,
): Promise<Value> {
  try {
    const timeoutMs = openTimeoutMs;
    await call(() => created.open?.(known), {
      file,
      name: 'open',
      timeoutMs,
      hint: 'the hub waits no longer',
    });
    return created;
  } catch (error) {
    // The reason why it did not open is what matters.
    await Promise.resolve(created[Symbol.asyncDispose]?.()).catch(() => undefined);
    throw error;
  }
}

async function tryPlugin(
  make: () => Promise<Created>,
  file: string,
  timeoutMs: number,
): Promise<string | undefined> {
  try {
    const created = await make();
    const name = '[Symbol.asyncDispose]';
    const hint = 'without open there is nothing to wait for';
    await call(() => created[Symbol.asyncDispose]?.(), { file, name, timeoutMs, hint });
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Says for itself what is wrong; the name of an error class would add nothing. */
class PluginTimeout extends Error {
  override readonly name = '';
}

/** Calls a function of a plugin. Whatever goes wrong is an Error that names its file. */
async function call<Value>(
  work: () => Value | Promise<Value>,
  plugin: {
    readonly file: string;
    readonly name: string;
    readonly timeoutMs: number;
    readonly hint: string;
  },
): Promise<Value> {
  const { file, name, timeoutMs, hint } = plugin;
  const late = (): never => {
    throw new PluginTimeout(`did not end within ${timeoutMs / 1000} seconds; ${hint}`);
  };
  try {
    return await withinTime(Promise.resolve(work()), timeoutMs, late);
  } catch (error) {
    throw new Error(describeThrown(error, file, `fails in ${name}`), { cause: error });
  }
}

const silentLog: PluginLog = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};

/** What must not be used in `create`: there is no hub yet, and there may never be one. */
function notYet(name: string): () => Promise<never> {
  return () =>
    Promise.reject(new Error(`${name} works once the hub runs: use it in open or later`));
}

const trialServices: AuthenticatorServices = {
  log: silentLog,
  credentials: {
    findPasswordHash: notYet('credentials.findPasswordHash'),
    setPasswordHash: notYet('credentials.setPasswordHash'),
    rehashPassword: notYet('credentials.rehashPassword'),
  },
  passwordHasher: { hash: notYet('passwordHasher.hash'), verify: notYet('passwordHasher.verify') },
  settings: { find: notYet('settings.find'), set: notYet('settings.set') },
  defaultClientId: notYet('defaultClientId'),
};
