/**
 * Options of an `LRUCache` of so many entries that takes memory as it fills. Its own option `max` would
 * take the room for all of them at once.
 */
export function growingUpTo(entries: number): {
  readonly maxSize: number;
  readonly sizeCalculation: () => number;
} {
  return { maxSize: entries, sizeCalculation: () => 1 };
}
