import { joined, type Text, text } from '../../../platform/texts/text.ts';

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
