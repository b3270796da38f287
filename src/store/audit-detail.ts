/** Longest detail as JSON. */
const longestDetail = 2_000;
const longestText = 200;
const mostItems = 20;

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
