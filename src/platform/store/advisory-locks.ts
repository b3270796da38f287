/**
 * Numbers of the advisory locks of PostgreSQL that the hub takes: any will do, as long as all hubs take the same and no
 * two uses share one.
 */
export const advisoryLocks = {
  migration: 7_284_510_921,
  instances: 7_284_510_922,
  keyvTable: 7_284_510_923,
  changePurge: 7_284_510_924,
  serverTakeover: 7_284_510_925,
  serverStarts: 7_284_510_926,
  usage: 7_284_510_927,
} as const;

/** Of the work that one process does for all. */
export const workLocks = { purge: 7_284_510_928, backup: 7_284_510_929 } as const;
