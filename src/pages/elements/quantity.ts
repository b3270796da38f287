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
