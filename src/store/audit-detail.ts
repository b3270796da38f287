/** Longest detail as JSON. */
const longestDetail = 2_000;
const longestText = 200;
const mostItems = 20;

/** What a database may refuse: NUL, and halves of surrogate pairs. */
const doubtful = /[\0\uD800-\uDFFF]/;
/** The same as JSON writes it. */
const doubtfulJson = /\\u(?:0000|d[89a-f])/;

/** A text as every database takes it; names in refused requests may be anything. */
export function storable(text: string, longest: number): string {
  if (text.length <= longest && !doubtful.test(text)) return text;
  return text.slice(0, longest).toWellFormed().replaceAll('\0', '\u{FFFD}');
}

/**
 * JSON of limited size: of what is longer, each part is cut short, and says how much is left out. The more there is, the
 * less is kept of each, so that something is known of all of them.
 */
export function toDetail(detail: Readonly<Record<string, unknown>>): string {
  const whole = JSON.stringify(detail);
  if (whole.length <= longestDetail && !doubtfulJson.test(whole)) return whole;
  for (let share = 1; share <= mostItems; share *= 2) {
    // Not by a replacer: JSON takes several times as long when it asks for each value.
    const text = JSON.stringify(
      shorten(detail, { items: mostItems / share, characters: longestText / share }),
    );
    if (text.length <= longestDetail) return text;
  }
  return '{"too_long":true}';
}

function shorten(value: unknown, most: { items: number; characters: number }): unknown {
  if (typeof value === 'string') return storable(value, most.characters);
  if (typeof value !== 'object' || value === null) return value;
  if (hasJson(value)) return shorten(value.toJSON(), most);
  const items = Math.floor(most.items);
  if (Array.isArray(value)) {
    const left = value.length > items ? [`and ${value.length - items} more`] : [];
    return [...value.slice(0, items), ...left].map((each) => shorten(each, most));
  }
  const members = Object.entries(value);
  const kept = members.slice(0, items).map(([name, each]) => [name, shorten(each, most)]);
  if (members.length > items) kept.push(['and_more', members.length - items]);
  return Object.fromEntries(kept);
}

function hasJson(value: object): value is { toJSON(): unknown } {
  return 'toJSON' in value && typeof value.toJSON === 'function';
}
