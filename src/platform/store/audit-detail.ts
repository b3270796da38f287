/** Longest detail as JSON. */
const maxDetailLength = 2_000;
const maxTextLength = 200;
const maxItems = 20;

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
  if (whole.length <= maxDetailLength && !doubtfulJson.test(whole)) return whole;
  for (let share = 1; share <= maxItems; share *= 2) {
    // Not by a replacer: JSON takes several times as long when it asks for each value.
    const text = JSON.stringify(
      shorten(detail, { items: maxItems / share, characters: maxTextLength / share }),
    );
    if (text.length <= maxDetailLength) return text;
  }
  return '{"too_long":true}';
}

function shorten(value: unknown, max: { items: number; characters: number }): unknown {
  if (typeof value === 'string') return storable(value, max.characters);
  if (typeof value !== 'object' || value === null) return value;
  if (hasJson(value)) return shorten(value.toJSON(), max);
  const items = Math.floor(max.items);
  if (Array.isArray(value)) {
    const left = value.length > items ? [`and ${value.length - items} more`] : [];
    return [...value.slice(0, items), ...left].map((each) => shorten(each, max));
  }
  const members = Object.entries(value);
  const kept = members.slice(0, items).map(([name, each]) => [name, shorten(each, max)]);
  if (members.length > items) kept.push(['and_more', members.length - items]);
  return Object.fromEntries(kept);
}

function hasJson(value: object): value is { toJSON(): unknown } {
  return 'toJSON' in value && typeof value.toJSON === 'function';
}
