import type { SpawnRequest } from '../../src/plugin/host/spawn-request.ts';
import type {
  PollResult,
  ServerExit,
  SpawnedServer,
  Spawner,
} from '../../src/plugin/host/spawner.ts';

/** What a test tells the spawner to do; left out, everything goes well at once. */
export interface SpawnerScript {
  /** Runs inside `start`, before the server is there: may wait or throw. */
  beforeStart?: (request: SpawnRequest) => Promise<void>;
  /** Runs inside `start`, when the server is there and nobody has been told. */
  afterStart?: (request: SpawnRequest) => Promise<void>;
  beforeStop?: (serverId: string) => Promise<void>;
  beforeRestore?: (serverId: string) => Promise<void>;
  /** Which other program has the address of every server. */
  foreignProcess?: string;
  /** What `poll` answers instead. */
  poll?: () => Promise<PollResult>;
  /** Whether only polling tells that a server has ended. */
  tellsNoExit?: boolean;
  /** Tells that a server has ended, before its exit. */
  ended?: Promise<void>;
}

/** A spawner whose servers are entries of a map: in full the contract, in the hands of a test. */
export interface ScriptedSpawner extends Spawner {
  script: SpawnerScript;
  /** Servers that are there: their id and the number of the start that made them. */
  readonly running: ReadonlyMap<string, number>;
  /** Calls in order, such as `start server-1`. */
  readonly calls: string[];
  /** Lets a server end by itself. */
  die(serverId: string, exit?: ServerExit): void;
  /** Forgets who waits for what, as a killed hub does; servers stay. */
  forget(): void;
}

interface Entry {
  readonly generation: number;
  readonly end: (exit: ServerExit) => void;
  readonly exited: Promise<ServerExit>;
}

/** Creates the spawner. */
export function createScriptedSpawner(reach: 'machine' | 'anywhere' = 'machine'): ScriptedSpawner {
  const entries = new Map<string, Entry>();
  const calls: string[] = [];
  // As a machine would, two spawners tell their servers apart.
  const engine = crypto.randomUUID();
  let generations = 0;

  function spawned(serverId: string, entry: Entry): SpawnedServer {
    const { generation, exited } = entry;
    return {
      url: `http://127.0.0.1:${10_000 + generation}`,
      state: { serverId, generation, engine },
      findForeignProcess: async () => spawner.script.foreignProcess,
      ...(spawner.script.tellsNoExit === true ? {} : { exited }),
      ...(spawner.script.ended && { ended: spawner.script.ended }),
    };
  }

  function find(state: Readonly<Record<string, unknown>>): [string, Entry] | undefined {
    const serverId = String(state['serverId']);
    const entry = entries.get(serverId);
    return entry !== undefined && entry.generation === state['generation']
      ? [serverId, entry]
      : undefined;
  }

  function remove(serverId: string, exit: ServerExit): void {
    const entry = entries.get(serverId);
    entries.delete(serverId);
    entry?.end(exit);
  }

  const spawner: ScriptedSpawner = {
    reach,
    script: {},
    calls,
    get running() {
      return new Map([...entries].map(([id, { generation }]) => [id, generation]));
    },
    die: (serverId, exit = { code: 1, signal: null }) => remove(serverId, exit),
    forget() {
      for (const [id, entry] of entries) {
        const { promise: exited, resolve: end } = Promise.withResolvers<ServerExit>();
        entries.set(id, { ...entry, exited, end });
      }
    },

    async start(request) {
      const { serverId, signal } = request;
      calls.push(`start ${serverId}`);
      await spawner.script.beforeStart?.(request);
      signal.throwIfAborted();
      if (entries.has(serverId)) throw new Error(`${serverId} is there twice`);
      generations += 1;
      const { promise: exited, resolve: end } = Promise.withResolvers<ServerExit>();
      const entry = { generation: generations, exited, end };
      entries.set(serverId, entry);
      request.onOutput('hello', 'stdout');
      await spawner.script.afterStart?.(request);
      return spawned(serverId, entry);
    },

    async stop(state) {
      calls.push(`stop ${String(state['serverId'])}`);
      await spawner.script.beforeStop?.(String(state['serverId']));
      const found = find(state);
      if (found !== undefined) remove(found[0], { code: null, signal: 'SIGTERM' });
    },

    async discard(serverId) {
      calls.push(`discard ${serverId}`);
      remove(serverId, { code: null, signal: 'SIGTERM' });
    },

    async poll(state): Promise<PollResult> {
      if (spawner.script.poll !== undefined) return spawner.script.poll();
      return { running: find(state) !== undefined };
    },

    async restore(state) {
      await spawner.script.beforeRestore?.(String(state['serverId']));
      const found = find(state);
      return found && spawned(...found);
    },
  };
  return spawner;
}
