/** Numbers that are the same for the same seed. */
export interface Random {
  /** From `min` up to, and without, `max`. */
  between(min: number, max: number): number;
  pick<Item>(items: readonly Item[]): Item;
  /** The items in random order, again and again: none comes twice before all have come once. */
  deal<Item>(items: readonly Item[]): Generator<Item, never>;
  isTrue(probability: number): boolean;
}

/** A linear congruential generator; high bits only, as the low ones repeat soon. */
export function createRandom(seed: number): Random {
  let state = BigInt(seed);
  function next(): number {
    state = BigInt.asUintN(64, state * 6_364_136_223_846_793_005n + 1_442_695_040_888_963_407n);
    return Number(state >> 32n) / 2 ** 32;
  }
  // Seeds that are near one another begin alike.
  for (let turn = 0; turn < 8; turn += 1) next();
  return {
    between: (min, max) => min + next() * (max - min),
    isTrue: (probability) => next() < probability,
    *deal(items) {
      for (;;) {
        const left = [...items];
        while (left.length > 0) yield* left.splice(Math.floor(next() * left.length), 1);
      }
    },
    pick(items) {
      const item = items[Math.floor(next() * items.length)];
      if (item === undefined) throw new Error('there is nothing to pick from');
      return item;
    },
  };
}
