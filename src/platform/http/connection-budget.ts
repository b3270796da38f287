/** How many connections of clients the hub takes, as far as its open files last. */
export interface ConnectionBudget {
  /** 0 for no limit. */
  readonly maxConnections: number;
  /** How many the open files last for, whatever is configured. */
  readonly affordable: number;
  /** Refusals on their way at once; beyond them a flood is cut without a word. */
  readonly maxRefusals: number;
  /** Where the open files do not last for what is configured: that, and what the operator can do. */
  readonly warning: { readonly problem: string; readonly fix: string } | undefined;
}

/** Files that are no client's: the database, logs, programs, and connections to the internal address. */
const largestReserve = 1_000;
const shareOfReserve = 1 / 3;
/** One of the client, and one to the server or service that it uses. */
const filesPerConnection = 2;
/** Where nothing is configured. */
const defaultConnections = 20_000;
const maxRefusals = 1_024;

/**
 * Keeps a part of the open files from clients: without it, they could take so many that neither servers
 * and services nor the hub itself get one.
 */
export function budgetConnections(options: {
  /** `Proxy.max_connections`; undefined for as many as is sensible. */
  readonly configured: number | undefined;
  /** Undefined where there is no limit. */
  readonly openFiles: number | undefined;
}): ConnectionBudget {
  const { configured = defaultConnections, openFiles } = options;
  if (openFiles === undefined) {
    return { maxConnections: configured, affordable: Infinity, maxRefusals, warning: undefined };
  }
  const reserve = Math.min(largestReserve, Math.ceil(openFiles * shareOfReserve));
  const affordable = Math.max(1, Math.floor((openFiles - reserve) / filesPerConnection));
  const isEnough = configured > 0 && configured <= affordable;
  return {
    maxConnections: isEnough ? configured : affordable,
    affordable,
    maxRefusals: Math.min(maxRefusals, Math.ceil(reserve / 4)),
    warning:
      options.configured === undefined || configured <= affordable
        ? undefined
        : {
            problem:
              `the limit of ${openFiles} open files allows ${affordable} client connections, and ` +
              `Proxy.max_connections is ${configured}`,
            fix:
              `raise it to ${configured * filesPerConnection + largestReserve} (LimitNOFILE= of a systemd unit, ` +
              '--ulimit nofile= of a container, ulimit -Hn of a shell), or lower Proxy.max_connections',
          },
  };
}
