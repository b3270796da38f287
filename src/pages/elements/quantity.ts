/** Formats a number of bytes: `412 MB`. */
export function formatBytes(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  const power = Math.min(4, Math.floor(Math.log10(bytes) / 3));
  const amount = bytes / 1000 ** power;
  return `${amount < 10 ? amount.toFixed(1) : Math.round(amount)} ${['B', 'kB', 'MB', 'GB', 'TB'][power]}`;
}

/** Formats CPU use: cores in use as a percentage of one core. */
export function formatCpu(cores: number): string {
  const percent = cores * 100;
  return `${percent < 10 ? percent.toFixed(1) : Math.round(percent)} %`;
}

/** Writes a count with its noun: `1 user`, `3 users`. */
export function formatCount(amount: number, noun: string, plural = `${noun}s`): string {
  return `${amount.toLocaleString('en')} ${amount === 1 ? noun : plural}`;
}

/** Formats how many there are of something in a second: `2.3/s`. */
export function formatRate(perSecond: number): string {
  return `${shortNumber(perSecond)}/s`;
}

/** Formats a time that is mostly short: `12 ms`, `1.3 s`. */
export function formatSeconds(seconds: number): string {
  return seconds < 1 ? `${shortNumber(seconds * 1000)} ms` : `${shortNumber(seconds)} s`;
}

function shortNumber(value: number): string {
  if (value === 0) return '0';
  return value < 10 ? value.toFixed(value < 0.1 ? 2 : 1) : Math.round(value).toLocaleString('en');
}
