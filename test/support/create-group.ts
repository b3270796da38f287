import type { Group, GroupStore } from '../../src/identity/users/group-store.ts';

/** Makes a group without members. */
export async function createGroup(
  groups: Pick<GroupStore, 'createAll' | 'setProperties'>,
  group: {
    readonly name: string;
    readonly origin?: string;
    readonly properties?: Readonly<Record<string, unknown>>;
  },
): Promise<Group> {
  const { name, origin = 'api', properties } = group;
  const [made] = await groups.createAll({ names: [name], memberNames: [], origin });
  if (made === undefined) throw new Error(`no group ${name} was made`);
  if (properties === undefined) return made;
  await groups.setProperties(name, properties);
  return { ...made, properties };
}
