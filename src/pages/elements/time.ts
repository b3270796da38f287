import { type Html, html } from '../html.ts';

/** Seconds of each unit, and how many of them it takes before the unit says enough. */
const units = [
  ['year', 31_557_600, 2],
  ['month', 2_629_800, 2],
  ['day', 86_400, 1],
  ['hour', 3600, 1],
  ['minute', 60, 1],
] as const;

/** Says in words how far a moment is from now: `5 minutes ago`, `in 3 days`, `just now`. */
export function relativeTime(moment: Date, now: Date): string {
  const exact = (moment.getTime() - now.getTime()) / 1000;
  // What ends in an hour is shown a moment later, and says an hour all the same.
  const seconds = exact >= 60 ? Math.round(exact / 60) * 60 : exact;
  const distance = Math.abs(seconds);
  for (const [unit, length, least] of units) {
    if (distance < length * least) continue;
    const amount = counted(Math.trunc(distance / length), unit);
    return seconds > 0 ? `in ${amount}` : `${amount} ago`;
  }
  return seconds > 0 ? 'in less than a minute' : 'just now';
}

/** Shows a moment relative to now, with the exact time for machines and as a tooltip. */
export function timeElement(moment: Date, now: Date): Html {
  const iso = moment.toISOString();
  const exact = `${iso.slice(0, 10)} ${iso.slice(11, 16)} UTC`;
  return html`<time datetime="${iso}" title="${exact}">${relativeTime(moment, now)}</time>`;
}

/** Says how long something takes: `45 seconds`, `3 minutes`. */
export function duration(seconds: number): string {
  const [unit, length] = units.find(([, size, least]) => seconds >= size * least) ?? ['second', 1];
  return counted(Math.ceil(seconds / length), unit);
}

/** Names a length of time that was set, in the largest unit that says it: `90 minutes`, `1 hour`. */
export function setDuration(seconds: number): string {
  const whole = units.find(([, size]) => size <= 86_400 && seconds > 0 && seconds % size === 0);
  const [unit, length] = whole ?? ['second', 1];
  return counted(seconds / length, unit);
}

function counted(amount: number, unit: string): string {
  return `${amount} ${unit}${amount === 1 ? '' : 's'}`;
}
