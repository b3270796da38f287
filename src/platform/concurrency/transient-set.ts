const place = Symbol('place');
interface Placed {
  [place]?: number;
}

/**
 * A set of what comes and goes with requests, each in no other set of this kind. It is an array with holes filled from
 * its end: a Set grows a new table every few dozen requests, and the old tables keep every request that was in them alive
 * until the next full collection, which was most of the hub's memory.
 */
export class TransientSet<Member extends object> {
  readonly #members: (Member & Placed)[] = [];

  get size(): number {
    return this.#members.length;
  }

  add(member: Member & Placed): void {
    if ((member[place] ?? -1) !== -1) return;
    member[place] = this.#members.length;
    this.#members.push(member);
  }

  delete(member: Member & Placed): void {
    const { [place]: at = -1 } = member;
    if (at === -1) return;
    member[place] = -1;
    const last = this.#members.pop();
    if (last === undefined || last === member) return;
    this.#members[at] = last;
    last[place] = at;
  }

  /** Those of now, though they may leave meanwhile. */
  [Symbol.iterator](): Iterator<Member> {
    return [...this.#members].values();
  }
}
