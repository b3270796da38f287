const originWords: Readonly<Record<string, string>> = {
  config: 'the configuration file',
  api: 'administrators',
};

/** Who decides on a group, a role or who holds one; an authenticator goes by its name. */
export const originWord = (origin: string): string => originWords[origin] ?? origin;
