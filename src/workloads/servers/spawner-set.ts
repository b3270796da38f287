import { TextError } from '../../platform/errors.ts';
import { type Text, text } from '../../platform/texts/text.ts';
import type { SpawnRequest } from '../../plugin/host/spawn-request.ts';
import type {
  HomeSpace,
  OptionsForm,
  PollResult,
  ResourceUsage,
  SpawnedServer,
  Spawner,
  SpawnerState,
} from '../../plugin/host/spawner.ts';
import { createBoundedUsage } from './bounded-usage.ts';

/** A spawner of the configuration. */
export interface NamedSpawner {
  readonly name: string;
  readonly spawner: Spawner;
}

/** All spawners of the configuration as one, which hands on each call to the one whose server it is. */
export interface SpawnerSet
  extends Omit<
    Spawner,
    'optionsForm' | 'usage' | 'open' | 'start' | 'homeSpace' | 'pause' | 'unpause'
  > {
  /** Starts a server; whether it is a rescue start is kept in its state. */
  start(request: SpawnRequest & { readonly isRescue?: boolean }): Promise<SpawnedServer>;
  /** False where its spawner cannot. */
  pause(state: SpawnerState): Promise<boolean>;
  unpause(state: SpawnerState): Promise<void>;
  /** As the spawner of a profile tells, or that of no profile. */
  homeSpace(
    request: Pick<SpawnRequest, 'workingDirectory' | 'profile'>,
  ): Promise<HomeSpace | undefined>;
  /**
   * What servers use, in the order of their states: each spawner is asked once for all of its own. Undefined for
   * those of whom theirs does not say in time. Never rejects.
   */
  usage(states: readonly SpawnerState[]): Promise<readonly (ResourceUsage | undefined)[]>;
  /** What users may choose, by the name of the spawner; those that ask nothing are not in it. */
  readonly forms: ReadonlyMap<string, OptionsForm>;
  /** Whether `resume` can go on with a start that kept this state. */
  canResume(state: SpawnerState): boolean;
}

/** Key in stored states, beside what the spawner stores: its name. */
const spawnerKey = 'spawner';
/** Key there of a server that makes room in a full home. */
const rescueKey = 'rescue';

/** Whether a server with this state was started to make room in a full home. */
export function isRescueState({ [rescueKey]: isRescue }: SpawnerState): boolean {
  return isRescue === true;
}

/**
 * Joins spawners. Which one has a server is kept in its state; a state that names none is of the time when
 * there was but one, and of the first.
 */
export function joinSpawners(
  members: readonly [NamedSpawner, ...NamedSpawner[]],
  /** Name of the spawner that starts servers of a profile, or of none. */
  spawnerOf: (profile: string | undefined) => string,
): SpawnerSet {
  const byName = new Map(members.map((member) => [member.name, member.spawner]));
  const isAlone = members.length === 1;
  const usageByName = new Map(
    members.map(({ name, spawner }) => [name, createBoundedUsage(spawner)]),
  );

  function find(stored: SpawnerState): { name: string; spawner: Spawner; state: SpawnerState } {
    const { [spawnerKey]: reported, [rescueKey]: _, ...state } = stored;
    const name = typeof reported === 'string' ? reported : members[0].name;
    const spawner = byName.get(name);
    if (spawner === undefined) throw new TextError(notConfigured(name));
    return { name, spawner, state };
  }

  const tagged = (name: string, state: SpawnerState, isRescue: boolean): SpawnerState => ({
    ...state,
    ...(!isAlone && { [spawnerKey]: name }),
    ...(isRescue && { [rescueKey]: true }),
  });

  const all = <Result>(call: (spawner: Spawner) => Promise<Result> | undefined) =>
    Promise.all(members.map(({ spawner }) => call(spawner)));

  const forms = members.flatMap(({ name, spawner: { optionsForm } }) =>
    optionsForm === undefined ? [] : [[name, optionsForm] as const],
  );

  return {
    forms: new Map(forms),
    needsAccounts: members.some(({ spawner }) => spawner.needsAccounts === true),
    reach: members.every(({ spawner }) => spawner.reach === 'anywhere') ? 'anywhere' : 'machine',

    async start(request) {
      const name = spawnerOf(request.profile);
      const spawner = byName.get(name);
      if (spawner === undefined) throw new TextError(notConfigured(name));
      const { isRescue = false, ...rest } = request;
      const keepState = (state: SpawnerState) => request.keepState(tagged(name, state, isRescue));
      const spawned = await spawner.start({ ...rest, keepState });
      return { ...spawned, state: tagged(name, spawned.state, isRescue) };
    },

    async pause(stored) {
      const { spawner, state } = find(stored);
      return (await spawner.pause?.(state)) ?? false;
    },

    async unpause(stored) {
      const { spawner, state } = find(stored);
      await spawner.unpause?.(state);
    },

    homeSpace: async (request) => byName.get(spawnerOf(request.profile))?.homeSpace?.(request),

    canResume(stored) {
      const { [spawnerKey]: reported = members[0].name } = stored;
      return typeof reported === 'string' && byName.get(reported)?.resume !== undefined;
    },

    async resume(stored, request) {
      const { name, spawner, state } = find(stored);
      const keepState = (kept: SpawnerState) =>
        request.keepState(tagged(name, kept, isRescueState(stored)));
      const spawned = await spawner.resume?.(state, { ...request, keepState });
      return spawned && { ...spawned, state: tagged(name, spawned.state, isRescueState(stored)) };
    },

    async stop(stored, options) {
      const { spawner, state } = find(stored);
      await spawner.stop(state, options);
    },

    async poll(stored): Promise<PollResult> {
      const { [spawnerKey]: reported } = stored;
      if (typeof reported === 'string' && !byName.has(reported)) {
        return { running: 'unknown', reason: notConfigured(reported) };
      }
      const { spawner, state } = find(stored);
      return spawner.poll(state);
    },

    async restore(stored, handlers) {
      const { name, spawner, state } = find(stored);
      const spawned = await spawner.restore(state, handlers);
      return spawned && { ...spawned, state: tagged(name, spawned.state, isRescueState(stored)) };
    },

    // Which of them had the server is not known: none does anything about one that it never had.
    discard: async (serverId, options) => {
      await all((spawner) => spawner.discard?.(serverId, options));
    },
    delete: async (server, options) => {
      await all((spawner) => spawner.delete?.(server, options));
    },

    async usage(states) {
      const places = states.map((state, place) => {
        const { [spawnerKey]: reported, [rescueKey]: _, ...own } = state;
        return {
          name: typeof reported === 'string' ? reported : members[0].name,
          state: own,
          place,
        };
      });
      const usages: (ResourceUsage | undefined)[] = states.map(() => undefined);
      const asked = [...Map.groupBy(places, ({ name }) => name)].map(async ([name, own]) => {
        const reported = (await usageByName.get(name)?.(own.map(({ state }) => state))) ?? [];
        for (const [index, { place }] of own.entries()) usages[place] = reported[index];
      });
      await Promise.all(asked);
      return usages;
    },

    async [Symbol.asyncDispose]() {
      await all((spawner) => spawner[Symbol.asyncDispose]?.());
    },
  };
}

function notConfigured(name: string): Text {
  return text`The spawner "${name}" of the server is not configured any more.`;
}
