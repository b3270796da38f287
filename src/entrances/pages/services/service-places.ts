/** Where a service stands in a list: before all with a larger number, the first number that differs counts. */
export type ServicePlace = readonly number[];

export function comparePlaces(one: ServicePlace, other: ServicePlace): number {
  const index = one.findIndex((number, at) => number !== other[at]);
  return (one[index] ?? 0) - (other[index] ?? 0);
}

/** The key of a service in a list, for the edge of a page. */
export function placeKey(place: ServicePlace, name: string): string {
  return `${place.join('.')},${name}`;
}

/**
 * The place that a key means now; undefined where it is none. `placeNow` gives that of a service which is still there,
 * as far as it does not depend on the state of the service, which may be another one by now.
 */
export function placeOf(
  key: string,
  placeNow: (name: string, then: ServicePlace) => ServicePlace | undefined,
): ServicePlace | undefined {
  const [, numbers, name = ''] = /^(\d{1,7}(?:\.\d{1,7}){0,2}),(.*)$/su.exec(key) ?? [];
  if (numbers === undefined) return undefined;
  const then = numbers.split('.').map(Number);
  // Another one has the place of one that is gone.
  return placeNow(name, then) ?? then.with(-1, (then.at(-1) ?? 0) - 0.5);
}
