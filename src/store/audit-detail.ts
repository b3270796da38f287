/** Longest detail as JSON. */
const longestDetail = 2_000;
const longestText = 200;
const mostItems = 20;

/** A text as every database takes it; names in refused requests may be anything. */
export function storable(text: string, longest: number): string {
  return text.slice(0, longest).toWellFormed().replaceAll('\0', '\u{FFFD}');
}

/**
 * JSON of limited size: what is too long is cut short, and says how much is left out. The more there is, the less is
 * kept of each part, so that something is known of all of them.
 */
export function toDetail(detail: Readonly<Record<string, unknown>>): string {
  // Nearly every detail, without asking for each value on the way to JSON, which takes several times as long.
  const whole = isShort(detail) ? JSON.stringify(detail) : undefined;
  if (whole !== undefined && whole.length <= longestDetail) return whole;
  for (let share = 1; share <= mostItems; share *= 2) {
    const text = JSON.stringify(detail, (_key, value: unknown) =>
      shorten(value, { items: mostItems / share, characters: longestText / share }),
    );
    if (text.length <= longestDetail) return text;
  }
  return '{"too_long":true}';
}

/** Whether it has nothing that is cut short, nor anything within that would have to be looked at. */
function isShort(values: object, depth = 0): boolean {
  let count = 0;
  for (const value of Object.values(values)) {
    count += 1;
    if (typeof value === 'string') {
      if (value !== storable(value, longestText)) return false;
    } else if (typeof value === 'object' && value !== null) {
      if (depth > 0 || !Array.isArray(value) || !isShort(value, 1)) return false;
    }
  }
  return count <= mostItems;
}

function shorten(value: unknown, most: { items: number; characters: number }): unknown {
  if (typeof value === 'string') return storable(value, most.characters);
  const items = Math.floor(most.items);
  if (Array.isArray(value) && value.length > items) {
    return [...value.slice(0, items), `and ${value.length - items} more`];
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const members = Object.entries(value);
  if (members.length <= items) return value;
  const left = { and_more: members.length - items };
  return { ...Object.fromEntries(members.slice(0, items)), ...left };
}
