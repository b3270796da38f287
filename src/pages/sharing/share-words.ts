import { defaultScopeNames } from '../../sharing/share.ts';

/** How far a server can be shared on the page; the API can share any scope. */
export const shareLevels = {
  open: {
    label: 'Open it while it runs',
    scopes: defaultScopeNames,
  },
  start: {
    label: 'Open it, and start it when it is stopped',
    scopes: ['access:servers', 'read:servers', 'start:servers'],
  },
} as const satisfies Readonly<
  Record<string, { readonly label: string; readonly scopes: readonly string[] }>
>;

export type ShareLevel = keyof typeof shareLevels;

const deeds: readonly (readonly [deed: string, scopes: readonly string[]])[] = [
  ['open', ['access:servers', 'shares']],
  ['start', ['start:servers', 'servers', 'admin:servers']],
  ['stop and delete', ['delete:servers', 'servers', 'admin:servers']],
  ['share further', ['shares']],
];

/** What comes with the deeds, or shows less than they do. */
const unspoken = new Set(['read:servers', 'read:shares', ...deeds.flatMap(([, scopes]) => scopes)]);

/** What shared scopes allow, in a few words: `Open, start`. */
export function shareWords(scopeNames: readonly string[]): string {
  const words = [
    ...deeds
      .filter(([, scopes]) => scopes.some((scope) => scopeNames.includes(scope)))
      .map(([deed]) => deed),
    ...scopeNames.filter((name) => !unspoken.has(name)),
  ];
  const [first = 'see its state', ...others] = words;
  return [first.charAt(0).toUpperCase() + first.slice(1), ...others].join(', ');
}
