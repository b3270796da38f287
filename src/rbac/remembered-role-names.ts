import { type ChangeWatch, createChangeAwareCache } from '../store/change-aware-cache.ts';
import type { RoleHolder } from './role.ts';
import type { RoleStore } from './role-store.ts';

const rememberedHolders = 10_000;

/** Names the roles of holders as the store does, and remembers them until something changes. */
export function rememberRoleNames(
  roles: Pick<RoleStore, 'namesHeldBy'>,
  changes: ChangeWatch,
): Pick<RoleStore, 'namesHeldBy'> {
  const remembered = createChangeAwareCache<readonly string[]>({ changes, max: rememberedHolders });
  return {
    async namesHeldBy(holders) {
      const beginning = remembered.begin();
      const found = new Map<string, readonly string[]>();
      const unknown: RoleHolder[] = [];
      for (const holder of holders) {
        // With all of the holder that roles depend on.
        const names = remembered.get(JSON.stringify(holder));
        if (names === undefined) unknown.push(holder);
        else found.set(holder.name, names);
      }
      if (unknown.length === 0) return found;
      const loaded = await roles.namesHeldBy(unknown);
      for (const holder of unknown) {
        const names = loaded.get(holder.name) ?? [];
        remembered.put(JSON.stringify(holder), names, beginning);
        found.set(holder.name, names);
      }
      return found;
    },
  };
}
