import type { Language } from '../../../platform/texts/language.ts';
import {
  exactTime,
  type Phrase,
  type Text,
  text,
  writeNumber,
  written,
} from '../../../platform/texts/text.ts';
import { type Html, html } from '../html.ts';

/** Formats a number of bytes: `412 MB`. */
export function formatBytes(bytes: number): Text {
  if (bytes < 1000) return withUnit(bytes, 0, ' B');
  const power = Math.min(4, Math.floor(Math.log10(bytes) / 3));
  const amount = bytes / 1000 ** power;
  return withUnit(amount, amount < 10 ? 1 : 0, ` ${['B', 'kB', 'MB', 'GB', 'TB'][power]}`);
}

/** Formats a sum of money: `1.20 EUR`. */
export function formatSum(
  sum: number,
  currency: string,
  options: Intl.NumberFormatOptions = { minimumFractionDigits: 2, maximumFractionDigits: 2 },
): Phrase {
  return written((language) => `${writeNumber(sum, language, options)} ${currency}`.trimEnd());
}

/** Formats CPU use: cores in use as a percentage of one core. */
export function formatCpu(cores: number): Text {
  const percent = cores * 100;
  return withUnit(percent, percent < 10 ? 1 : 0, ' %');
}

/** Formats how many there are of something in a second: `2.3/s`. */
export function formatRate(perSecond: number): Text {
  return shortNumber(perSecond, '/s');
}

/** Formats a time that is mostly short: `12 ms`, `1.3 s`. */
export function formatSeconds(seconds: number): Text {
  return seconds < 1 ? shortNumber(seconds * 1000, ' ms') : shortNumber(seconds, ' s');
}

/** Formats a number with so many digits behind the point: `1,234.5`. */
export function formatNumber(value: number, fractionDigits = 0): Text {
  return withUnit(value, fractionDigits, '');
}

function shortNumber(value: number, unit: string): Text {
  if (value === 0 || value >= 10) return withUnit(value, 0, unit);
  return withUnit(value, value < 0.1 ? 2 : 1, unit);
}

function withUnit(value: number, digits: number, unit: string): Text {
  const options = { minimumFractionDigits: digits, maximumFractionDigits: digits };
  return written((language) => writeNumber(value, language, options) + unit);
}

/** Seconds of each unit, and how many of them it takes before the unit says enough. */
const units = [
  ['year', 31_557_600, 2],
  ['month', 2_629_800, 2],
  ['day', 86_400, 1],
  ['hour', 3600, 1],
  ['minute', 60, 1],
] as const;

type Unit = (typeof units)[number][0] | 'second';

/** Says in words how far a moment is from now: `5 minutes ago`, `in 3 days`, `just now`. */
export function relativeTime(moment: Date, now: Date): Text {
  const exact = (moment.getTime() - now.getTime()) / 1000;
  // What ends in an hour is shown a moment later, and says an hour all the same.
  const seconds = exact >= 60 ? Math.round(exact / 60) * 60 : exact;
  const distance = Math.abs(seconds);
  for (const [unit, length, min] of units) {
    if (distance < length * min) continue;
    const amount = Math.trunc(seconds / length);
    return written((language) => relative(amount, unit, language));
  }
  return seconds > 0 ? text`in less than a minute` : text`just now`;
}

/** Shows a moment relative to now, with the exact time for machines and as a tooltip; without one, that it never came. */
export function timeElement(moment: Date | undefined, now: Date): Html {
  if (moment === undefined) return html`<span class="soft">${text`Never`}</span>`;
  return html`<time datetime="${moment.toISOString().replace(/\d\dZ$/, 'Z')}" title="${exactTime(moment)}">${relativeTime(moment, now)}</time>`;
}

/** Says how long something takes: `45 seconds`, `3 minutes`. */
export function duration(seconds: number): Text {
  const [unit, length] = units.find(([, size, min]) => seconds >= size * min) ?? ['second', 1];
  return written((language) => counted(Math.ceil(seconds / length), unit, language));
}

/** Says when a length of time will have passed: `in 45 seconds`. */
export function afterDuration(seconds: number): Text {
  const [unit, length] = units.find(([, size, min]) => seconds >= size * min) ?? ['second', 1];
  return written((language) => relative(Math.ceil(seconds / length), unit, language));
}

/** Says how long ago something was: `45 seconds ago`. */
export function beforeNow(seconds: number): Text {
  const [unit, length] = units.find(([, size, min]) => seconds >= size * min) ?? ['second', 1];
  return written((language) => relative(-Math.ceil(seconds / length), unit, language));
}

/** Names a length of time that was set, in the largest unit that says it: `90 minutes`, `1 hour`. */
export function setDuration(seconds: number): Text {
  const whole = units.find(([, size]) => size <= 86_400 && seconds > 0 && seconds % size === 0);
  const [unit, length] = whole ?? ['second', 1];
  return written((language) => counted(seconds / length, unit, language));
}

function relative(amount: number, unit: Unit, language: Language): string {
  // A list has a hundred of them, of few that there are; the formatter is slow beside it.
  const known = language.format('relative times', () => new Map<string, string>());
  const key = `${amount} ${unit}`;
  const before = known.get(key);
  if (before !== undefined) return before;
  const format = language.format('relative time', (tag) => new Intl.RelativeTimeFormat(tag));
  const words = format.format(amount, unit);
  if (known.size < maxCached) known.set(key, words);
  return words;
}

const maxCached = 500;

function counted(amount: number, unit: Unit, language: Language): string {
  return writeNumber(amount, language, { style: 'unit', unit, unitDisplay: 'long' });
}
