import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Keyv, type KeyvStoreAdapter } from 'keyv';
import { HubError } from '../errors.ts';
import { text } from '../texts/text.ts';

/** A store that several processes may change at once. */
export interface SharedAdapter extends KeyvStoreAdapter {
  /**
   * Replaces a stored text, or one that is not there (undefined), by another or by nothing, in one step; false when
   * something else is there.
   */
  replace(
    key: string,
    former: string | undefined,
    next: { readonly text: string; readonly lifetimeMs: number } | undefined,
  ): Promise<boolean>;
}

export interface SavedValue<Value> {
  readonly value: Value;
  readonly lifetimeMs: number;
}

/** Expiring values of one use. How long one lives is measured by the store: the clocks of processes may differ. */
export interface KeyvSpace<Value> extends Keyv<Value> {
  /**
   * Changes a value although other processes may do so too. `change` gets what is there and returns what shall be
   * there, `delete`, or undefined to leave it; it may be called several times. Returns what is there in the end.
   */
  update(
    key: string,
    change: (former: Value | undefined) => SavedValue<Value> | 'delete' | undefined,
  ): Promise<Value | undefined>;
}

/** Each attempt but one was in vain because another process was faster. */
const maxAttempts = 50;
const maxPauseMs = 20;

/** The values of a name over a store. */
export function createKeyvSpace<Value>(name: string, adapter: SharedAdapter): KeyvSpace<Value> {
  const keyv = new Keyv<Value>(adapter, {
    namespace: name,
    // Keyv leaves the prefix out where a key happens to begin with it, so that two keys could
    // be one; the adapters have a namespace of their own.
    useKeyPrefix: false,
    throwOnErrors: true,
    emitErrors: false,
  });
  const { serialize } = keyv;
  if (serialize === undefined) throw new TypeError('Keyv has no serialization');
  // Without the end, which Keyv would judge by the clock of this process.
  keyv.serialize = (data) => serialize(withoutEnd(data));

  async function attempt(
    key: string,
    change: Parameters<KeyvSpace<Value>['update']>[1],
  ): Promise<{ readonly value: Value | undefined } | undefined> {
    const stored = await adapter.get<string>(key);
    const text = typeof stored === 'string' ? stored : undefined;
    const former = text === undefined ? undefined : await keyv.deserializeData<Value>(text);
    const next = change(former?.value);
    if (next === undefined) return { value: former?.value };
    if (next === 'delete') {
      const isDone = text === undefined || (await adapter.replace(key, text, undefined));
      return isDone ? { value: undefined } : undefined;
    }
    const { value, lifetimeMs } = next;
    const written = await keyv.serializeData({ value });
    const isDone = await adapter.replace(key, text, { text: String(written), lifetimeMs });
    return isDone ? { value } : undefined;
  }

  return Object.assign(keyv, {
    async update(key: string, change: Parameters<KeyvSpace<Value>['update']>[1]) {
      for (let attempts = 0; attempts < maxAttempts; attempts += 1) {
        const done = await attempt(key, change);
        if (done !== undefined) return done.value;
        await sleep(Math.random() * maxPauseMs);
      }
      throw new HubError('storage_unavailable', text`Too many processes change the same value.`, {
        retryAfterSeconds: 1,
      });
    },
  });
}

function withoutEnd<Data extends { readonly expires?: unknown }>(data: Data): Data {
  const { expires: _, ...rest } = data;
  return rest as Data;
}

/** Whether this is the first use of a key within `lifetimeMs`, in whatever process. */
export async function useOnce(
  used: Pick<KeyvSpace<true>, 'update'>,
  key: string,
  lifetimeMs: number,
): Promise<boolean> {
  let isFirst = false;
  await used.update(key, (former) => {
    isFirst = former === undefined;
    return isFirst ? { value: true, lifetimeMs } : undefined;
  });
  return isFirst;
}

/** Runs work while no other process does the same for a key; see `createKeyvMutex`. */
export type RunAlone = <Result>(key: string, work: () => Promise<Result>) => Promise<Result>;

const mutexPollMs = 100;

/**
 * Lets one process at a time work on a key. What its holder does not give back, as when it was killed, is free again
 * after `lifetimeMs`; a caller that waits for longer goes on all the same, and so does everyone while the store is away: for
 * work that is better done once, and not for what must never be done twice.
 */
export function createKeyvMutex(
  holders: Pick<KeyvSpace<string>, 'update'>,
  { lifetimeMs }: { readonly lifetimeMs: number },
): RunAlone {
  async function take(key: string, self: string): Promise<void> {
    const giveUpAtMs = performance.now() + lifetimeMs;
    while (performance.now() < giveUpAtMs) {
      const holder = await holders.update(key, (former) =>
        former === undefined ? { value: self, lifetimeMs } : undefined,
      );
      if (holder === self) return;
      await sleep(mutexPollMs);
    }
  }

  return async (key, work) => {
    const self = randomUUID();
    await take(key, self).catch(() => undefined);
    try {
      return await work();
    } finally {
      // Not waited for: it ends by itself too.
      holders.update(key, (holder) => (holder === self ? 'delete' : undefined)).catch(() => {});
    }
  };
}
