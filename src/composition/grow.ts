/** One record of services in the making: each part gets what was there before it, and adds its own by name. */
export interface Growing<Grown extends object> {
  readonly grown: Promise<Grown>;
  /** Adds the services of a part; a name that is taken already does not compile. */
  with<Part extends object>(
    part: (grown: Grown) => Part | Promise<Part>,
    ...taken: [keyof Grown & keyof Part] extends [never] ? [] : [nameIsTaken: never]
  ): Growing<Grown & Part>;
}

/** Parts are called one after the other, each when the one before it is there. */
export function grow<Grown extends object>(seed: Grown): Growing<Grown> {
  return growing(Promise.resolve<Grown>(seed) as Promise<Grown>);
}

function growing<Grown extends object>(grown: Promise<Grown>): Growing<Grown> {
  async function grownWith<Part extends object>(part: (grown: Grown) => Part | Promise<Part>) {
    const before = await grown;
    const added: Part = await part(before);
    return { ...before, ...added };
  }
  return { grown, with: (part, ..._taken: unknown[]) => growing(grownWith(part)) };
}
