import { Keyv } from 'keyv';
import type { KeyvSpace } from '../../src/platform/store/keyv-space.ts';

/** Expiring values of one use in memory, for code that is tested without a store of several processes. */
export function memorySpace<Value>(): KeyvSpace<Value> {
  const keyv = new Keyv<Value>();
  let last: Promise<unknown> = Promise.resolve();
  const update: KeyvSpace<Value>['update'] = (key, change) => {
    const updated = last.then(async () => {
      const former = await keyv.get(key);
      const next = change(former);
      if (next === undefined) return former;
      if (next === 'delete') {
        await keyv.delete(key);
        return undefined;
      }
      await keyv.set(key, next.value, next.lifetimeMs);
      return next.value;
    });
    last = updated.catch(() => undefined);
    return updated;
  };
  return Object.assign(keyv, { update });
}
