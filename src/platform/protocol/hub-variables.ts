/** The hub's variables by their name without prefix; undefined leaves one out. */
export type HubVariables = Readonly<Record<string, string | undefined>>;
