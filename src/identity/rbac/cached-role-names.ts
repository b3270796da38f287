import {
  type ChangeWatch,
  createChangeAwareCache,
} from '../../platform/store/change-aware-cache.ts';
import type { RoleHolder } from './role.ts';
import type { RoleStore } from './role-store.ts';

const cachedHolders = 10_000;

/** Names the roles of holders as the store does, and remembers them until something changes. */
export function cacheRoleNames(
  roles: Pick<RoleStore, 'namesGrantedTo'>,
  changes: ChangeWatch,
): Pick<RoleStore, 'namesGrantedTo'> {
  const cached = createChangeAwareCache<readonly string[]>({ changes, max: cachedHolders });
  return {
    async namesGrantedTo(holders) {
      const beginning = cached.begin();
      const found = new Map<string, readonly string[]>();
      const unknown: RoleHolder[] = [];
      for (const holder of holders) {
        // With all of the holder that roles depend on.
        const names = cached.get(JSON.stringify(holder));
        if (names === undefined) unknown.push(holder);
        else found.set(holder.name, names);
      }
      if (unknown.length === 0) return found;
      const loaded = await roles.namesGrantedTo(unknown);
      for (const holder of unknown) {
        const names = loaded.get(holder.name) ?? [];
        cached.put(JSON.stringify(holder), names, beginning);
        found.set(holder.name, names);
      }
      return found;
    },
  };
}
