/** Longest detail as JSON. */
const longestDetail = 2_000;
const longestText = 200;
const mostItems = 20;
/** For what stands in a detail beside a list of names. */
const roomForOthers = 200;

/** A text as every database takes it; names in refused requests may be anything. */
export function storable(text: string, longest: number): string {
  return text.slice(0, longest).toWellFormed().replaceAll('\0', '\u{FFFD}');
}

/** JSON of limited size: what is too long is cut short, and what cannot be is left out. */
export function toDetail(detail: Readonly<Record<string, unknown>>): string {
  const text = JSON.stringify(detail, (_key, value: unknown) => {
    if (typeof value === 'string') return storable(value, longestText);
    if (Array.isArray(value) && value.length > mostItems) {
      return [...value.slice(0, mostItems), `and ${value.length - mostItems} more`];
    }
    return value;
  });
  return text.length <= longestDetail ? text : '{"too_long":true}';
}

/** Names in as many lists as it takes for each to be in the detail of a deed whole; one list at least. */
export function listsForDetails(names: readonly string[]): readonly (readonly string[])[] {
  const first: string[] = [];
  const lists = [first];
  let last = first;
  let length = 0;
  for (const name of names) {
    const more = JSON.stringify(storable(name, longestText)).length + 1;
    if (last.length === mostItems || length + more > longestDetail - roomForOthers) {
      last = [];
      lists.push(last);
      length = 0;
    }
    last.push(name);
    length += more;
  }
  return lists;
}
