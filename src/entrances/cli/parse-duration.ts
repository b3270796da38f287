import { InvalidArgumentError } from 'commander';

/** Seconds of a time such as `3600`, `12h` or `30d`. Throws `InvalidArgumentError`. */
export function parseDuration(text: string): number {
  const [, amount, unit = 's'] = /^(\d{1,9})([smhdw])?$/.exec(text) ?? [];
  const unitSeconds = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 }[unit] ?? 1;
  const seconds = Number(amount) * unitSeconds;
  if (seconds > 0) return seconds;
  throw new InvalidArgumentError('It is a number of seconds, or one with m, h, d or w.');
}
