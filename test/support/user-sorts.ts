const columns = ['name', 'created', 'lastActivity', 'server'] as const;

/** Every order in which users are listed. */
export const userSorts = columns.flatMap((column) => [column, `-${column}`] as const);
