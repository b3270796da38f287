import fc, { type Arbitrary } from 'fast-check';

export type JsonSchema = { readonly [keyword: string]: unknown };

/** What hardly any schema means, though many let some of it through. */
const junk: Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown>(null, true, 0, -1, 1.5, 2 ** 53, 1e308, '', ' ', '..', '\0', [], {}),
  fc.constantFrom<unknown>('__proto__', 'constructor', '\ud800', '‮evil', 'x'.repeat(300)),
  fc.constantFrom<unknown>('9'.repeat(30), '2026-02-30T25:61:61Z', "'; drop table users; --"),
  fc.constant(JSON.parse('{"__proto__":{"admin":true}}')),
  fc.jsonValue({ maxDepth: 2 }),
);

/**
 * Values that a JSON Schema describes; of 100 of their parts `junkShare` are something else. `names` are what
 * strings without a pattern hold often. `$ref` is looked up in the document.
 */
export function valuesOf(
  schema: JsonSchema | boolean,
  options: {
    readonly document: object;
    readonly junkShare: number;
    readonly names: readonly string[];
  },
): Arbitrary<unknown> {
  const { document, junkShare, names } = options;

  function part(inner: unknown, depth: number): Arbitrary<unknown> {
    const proper = properValue(inner as JsonSchema | boolean, depth);
    return fc.oneof(
      { arbitrary: proper, weight: 100 - junkShare },
      { arbitrary: junk, weight: junkShare },
    );
  }

  function properValue(inner: JsonSchema | boolean, depth: number): Arbitrary<unknown> {
    if (typeof inner === 'boolean' || depth > 8) return junk;
    const { $ref, anyOf, oneOf, allOf, type } = inner;
    if (typeof $ref === 'string') return properValue(lookUp(document, $ref), depth + 1);
    const choices = (anyOf ?? oneOf) as readonly unknown[] | undefined;
    if (choices !== undefined) return fc.oneof(...choices.map((each) => part(each, depth + 1)));
    if (Array.isArray(allOf))
      return properValue(Object.assign({}, inner, ...allOf, { allOf: undefined }), depth + 1);
    if (Array.isArray(inner['enum'])) return fc.constantFrom(...inner['enum']);
    if ('const' in inner) return fc.constant(inner['const']);
    switch (Array.isArray(type) ? type[0] : type) {
      case 'object':
        return objects(inner, depth);
      case 'array':
        return arrays(inner, depth);
      case 'integer':
        return fc.integer(range(inner));
      case 'number':
        return fc.oneof(fc.integer(range(inner)), fc.double({ ...range(inner), noNaN: true }));
      case 'boolean':
        return fc.boolean();
      case 'string':
        return strings(inner, names);
      case 'null':
        return fc.constant(null);
      default:
        return junk;
    }
  }

  function objects(inner: JsonSchema, depth: number): Arbitrary<unknown> {
    const properties = Object.entries((inner['properties'] ?? {}) as object);
    const required = (inner['required'] ?? []) as readonly string[];
    const members = fc.record(
      Object.fromEntries(properties.map(([name, each]) => [name, part(each, depth + 1)])),
      { requiredKeys: required.filter((name) => properties.some(([known]) => known === name)) },
    );
    const further = inner['additionalProperties'];
    if (further === false || further === undefined) return members;
    const keys = strings((inner['propertyNames'] ?? {}) as JsonSchema, names);
    const others = fc.dictionary(keys, part(further, depth + 1), { maxKeys: 3 });
    return fc.tuple(others, members).map((all) => Object.assign({}, ...all));
  }

  function arrays(inner: JsonSchema, depth: number): Arbitrary<unknown> {
    const { prefixItems, items = {}, minItems: minLength = 0, maxItems = 4 } = inner;
    if (Array.isArray(prefixItems))
      return fc.tuple(...prefixItems.map((each) => part(each, depth + 1)));
    const length = {
      minLength: Number(minLength),
      maxLength: Math.max(Number(minLength), Math.min(4, Number(maxItems))),
    };
    return fc.array(part(items, depth + 1), length);
  }

  return part(schema, 0);
}

function range({ minimum, maximum, exclusiveMinimum }: JsonSchema): { min: number; max: number } {
  const min = Math.max(
    -(2 ** 31),
    Number(minimum ?? (exclusiveMinimum === undefined ? -1 : Number(exclusiveMinimum) + 1)),
  );
  return { min, max: Math.max(min, Math.min(2 ** 31 - 1, Number(maximum ?? 100_000))) };
}

function strings(inner: JsonSchema, names: readonly string[]): Arbitrary<string> {
  const { pattern, format, minLength, maxLength } = inner;
  const isLong = (text: string) =>
    text.length >= Number(minLength ?? 0) &&
    text.length <= Number(maxLength ?? Number.POSITIVE_INFINITY);
  const fitting = names.filter(
    (name) => isLong(name) && (typeof pattern !== 'string' || new RegExp(pattern, 'u').test(name)),
  );
  const named = fitting.length === 0 ? fc.string() : fc.constantFrom(...fitting);
  if (typeof format === 'string') return fc.oneof(formatted(format), named);
  if (typeof pattern !== 'string')
    return fc.oneof(
      { arbitrary: named, weight: 3 },
      fc.string({
        minLength: Math.min(10, Number(minLength ?? 0)),
        maxLength: Math.max(10, Number(minLength ?? 0)),
      }),
    );
  try {
    return fc.oneof(fc.stringMatching(new RegExp(pattern)).filter(isLong), named);
  } catch {
    // It has what fast-check cannot make, such as a look-ahead.
    return named;
  }
}

function formatted(format: string): Arbitrary<string> {
  switch (format) {
    case 'date-time':
      return fc
        .date({ noInvalidDate: true, min: new Date(0), max: new Date(4e12) })
        .map((date) => date.toISOString());
    case 'email':
      return fc.emailAddress();
    default:
      return fc.webUrl();
  }
}

/** Looks up `#/a/b` (RFC 6901). */
export function lookUp(document: object, reference: string): JsonSchema {
  const keys = reference.split('/').slice(1);
  const unescaped = keys.map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));
  return unescaped.reduce<unknown>(
    (at, key) => (at as Record<string, unknown>)[key],
    document,
  ) as JsonSchema;
}
