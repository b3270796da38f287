import { type Text, writeNumber, written } from '../../../platform/texts/text.ts';

/** Formats a number of bytes: `412 MB`. */
export function formatBytes(bytes: number): Text {
  if (bytes < 1000) return withUnit(bytes, 0, ' B');
  const power = Math.min(4, Math.floor(Math.log10(bytes) / 3));
  const amount = bytes / 1000 ** power;
  return withUnit(amount, amount < 10 ? 1 : 0, ` ${['B', 'kB', 'MB', 'GB', 'TB'][power]}`);
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
