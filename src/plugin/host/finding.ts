/** What one check of `hub doctor` came to. */
export interface Finding {
  /** What was looked at, such as `database`. */
  readonly check: string;
  /** `skipped`: it could not be found out, and `detail` says why. */
  readonly state: 'ok' | 'warning' | 'failed' | 'skipped';
  readonly detail: string;
  /** What to do about it, for a warning or a failure. */
  readonly fix?: string;
}

export const ok = (check: string, detail: string): Finding => ({ check, state: 'ok', detail });

export const skipped = (check: string, detail: string): Finding => ({
  check,
  state: 'skipped',
  detail,
});

export const failed = (check: string, detail: string, fix: string): Finding => ({
  check,
  state: 'failed',
  detail,
  fix,
});

export const warning = (check: string, detail: string, fix: string): Finding => ({
  ...failed(check, detail, fix),
  state: 'warning',
});
