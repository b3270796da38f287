import { joined, type Text, text } from '../../texts/text.ts';
import type { GroupPages } from '../../users/group-pages-store.ts';

/** What to say after a member was removed; warns where who put them into the group will do so again. */
export function removalNotice(
  done: Text,
  origin: string | undefined,
): { readonly kind: 'good' | 'warn'; readonly text: Text } {
  if (origin === undefined || origin === 'api') return { kind: 'good', text: done };
  const again =
    origin === 'config'
      ? text`The configuration file names the user there: the next reload adds them again.`
      : text`“${origin}” adds them again at the next login.`;
  return { kind: 'warn', text: joined([done, again]) };
}

/** Who put a user into a group. */
export async function originOfMember(
  groups: Pick<GroupPages, 'membershipsOf'>,
  userName: string,
  groupName: string,
): Promise<string | undefined> {
  const memberships = await groups.membershipsOf(userName);
  return memberships.find(({ name }) => name === groupName)?.origin;
}
