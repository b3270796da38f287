/** What was used, and what it cost by the prices of its time. */
export interface AmountColumns {
  wall_seconds: number;
  cpu_seconds: number;
  gib_seconds: number;
  gpu_seconds: number;
  cost: number;
}

/** How far the use of a run is counted. */
export interface ServerMetersTable {
  server_id: string;
  /** Of the run. */
  started_at: number;
  /** Up to when it is counted, by the clock of the database. */
  counted_at: number;
  /** What the counter of its engine said then; null where it has none. */
  cpu_seconds: number | null;
  /** JSON: whose it is, and what it used last. */
  subject: string;
}

/** The use of a server in an hour or a day that begins at `at`. */
export interface UsageRecordsTable extends AmountColumns {
  /** `hour` or `day`. */
  span: string;
  at: number;
  server_id: string;
  /** Empty for none. */
  profile: string;
  engine: string;
  /** `counter`, `sample` or `time`: what the figures are from. */
  source: string;
  server_name: string;
  user_id: string;
  user_name: string;
  /** JSON list of names. */
  user_groups: string;
}

/** Sums by hour, day and month (UTC): of everything, a user, a group, a profile. */
export interface UsageTotalsTable extends AmountColumns {
  /** `all`, `user`, `group` or `profile`. */
  kind: string;
  /** Id of the user or group, or name of the profile. */
  subject: string;
  /** `hour`, `day` or `month`. */
  span: string;
  at: number;
  /** Its name then. */
  label: string;
}

/** What was granted beside a budget until a time. */
export interface BudgetGrantsTable {
  id: string;
  /** Name of the budget. */
  budget: string;
  /** Null for all who use it. */
  user_id: string | null;
  /** JSON, by the keys of the budget. */
  amounts: string;
  expires_at: number;
}

/** A budget that was set at run time. */
export interface BudgetsTable {
  name: string;
  /** JSON, as in the configuration but for its name. */
  definition: string;
}

/** How full the home of a user was when it was looked at last. */
export interface HomeSpacesTable {
  user_id: string;
  used_bytes: number;
  total_bytes: number;
  measured_at: number;
}
