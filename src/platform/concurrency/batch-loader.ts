/**
 * Asks once for all keys that are asked for in the same turn of the event loop, as by requests that arrive
 * together. The answer was never begun before the question: it holds what was true by then.
 */
export function createBatchLoader<Key, Value>(
  load: (keys: readonly Key[]) => Promise<ReadonlyMap<Key, Value>>,
): (key: Key) => Promise<Value | undefined> {
  let keys = new Set<Key>();
  let loaded: Promise<ReadonlyMap<Key, Value>> | undefined;

  async function loadTogether(): Promise<ReadonlyMap<Key, Value>> {
    await new Promise(setImmediate);
    const asked = [...keys];
    keys = new Set();
    loaded = undefined;
    return load(asked);
  }

  return async (key) => {
    keys.add(key);
    loaded ??= loadTogether();
    return (await loaded).get(key);
  };
}
