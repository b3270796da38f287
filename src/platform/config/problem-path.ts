/** Formats a path for messages: `Hub.services[0].url`. */
export function formatPath(path: readonly PropertyKey[]): string {
  return path
    .map((step, index) => {
      if (typeof step === 'number') return `[${step}]`;
      const name = String(step);
      if (!/^[\w$:/-]+$/.test(name)) return `[${JSON.stringify(name.slice(0, 80))}]`;
      return index === 0 ? name : `.${name}`;
    })
    .join('');
}

/**
 * Names the setting to which a path belongs: its section and key, and the entry when the key holds a
 * list. Problems inside one unit tend to cause one another.
 */
export function unitOfPath(path: string): string {
  return /^[^.[]*(?:\.[^.[]*)?(?:\[\d+\])?/.exec(path)?.[0] ?? path;
}
