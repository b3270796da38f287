import { type Phrase, phraseIn, text, written } from '../../../platform/texts/text.ts';
import { defaultScopeNames } from '../../../workloads/sharing/share.ts';

/** How far a server can be shared on the page; the API can share any scope. */
export const shareLevels = {
  open: {
    label: text`Can open while it runs`,
    scopes: defaultScopeNames,
  },
  start: {
    label: text`Can open and start`,
    scopes: ['access:servers', 'read:servers', 'start:servers'],
  },
} as const satisfies Readonly<
  Record<string, { readonly label: Phrase; readonly scopes: readonly string[] }>
>;

export type ShareLevel = keyof typeof shareLevels;

const abilities: readonly (readonly [auditEvent: Phrase, scopes: readonly string[]])[] = [
  [text`open`, ['access:servers', 'shares']],
  [text`start`, ['start:servers', 'servers', 'admin:servers']],
  [text`stop and delete`, ['delete:servers', 'servers', 'admin:servers']],
  [text`share further`, ['shares']],
];

/** What comes with the actions, or shows less than they do. */
const unspoken = new Set([
  'read:servers',
  'read:shares',
  ...abilities.flatMap(([, scopes]) => scopes),
]);

/** What shared scopes allow, in a few words: `Open, start`, or `open, start` within a sentence. */
export function shareLabels(
  scopeNames: readonly string[],
  { inSentence = false }: { readonly inSentence?: boolean } = {},
): Phrase {
  const words = [
    ...abilities
      .filter(([, scopes]) => scopes.some((scope) => scopeNames.includes(scope)))
      .map(([auditEvent]) => auditEvent),
    ...scopeNames.filter((name) => !unspoken.has(name)),
  ];
  const said = words.length === 0 ? [text`see its state`] : words;
  return written((language) => {
    const joined = said.map((word) => phraseIn(word, language)).join(', ');
    return inSentence
      ? joined
      : joined.slice(0, 1).toLocaleUpperCase(language.tag) + joined.slice(1);
  });
}
