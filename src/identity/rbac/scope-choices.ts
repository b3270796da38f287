import {
  formatScope,
  readScope,
  type Scope,
  type ScopeFilterKind,
  type ScopeSet,
} from './scope.ts';
import { metascopes, type ScopeCatalogue, type ScopeDefinition } from './scope-definitions.ts';
import { describeScope, type PlacedScope, type ScopeReader } from './scope-descriptions.ts';
import { type ScopeGroup, scopeGroupTitles } from './scope-labels.ts';

/** One scope to tick, with those that come with it. */
export interface ScopeChoice extends PlacedScope {
  readonly parts: readonly ScopeChoice[];
}

/** What a holder can choose from, in the order of the groups. */
export interface ScopeChoices {
  readonly groups: readonly {
    readonly group: ScopeGroup;
    readonly choices: readonly ScopeChoice[];
  }[];
  /**
   * For whom the scopes that reach beyond the holder's own can be chosen: the filters under which some are
   * held, such as `!group=staff`, and an empty one where some are held without.
   */
  readonly reaches: readonly string[];
  /** Kinds of filters that mean something for one of these scopes. */
  readonly reachKinds: readonly ScopeFilterKind[];
}

const filterKinds: Readonly<
  Record<NonNullable<ScopeDefinition['of']>, readonly ScopeFilterKind[]>
> = {
  users: ['user', 'group'],
  servers: ['user', 'group', 'server'],
  groups: ['group'],
  services: ['service'],
};

/** The filters that mean something for a scope. What those of the operator are about is not known here. */
export function filterKindsOf({ of }: ScopeDefinition): readonly ScopeFilterKind[] {
  return of === undefined ? [] : filterKinds[of];
}

/** Whether a scope without a filter is one whose reach is chosen for all of them together. */
export function takesReach(name: string, definition: ScopeDefinition): boolean {
  return definition.of !== undefined && name !== 'access:services';
}

/**
 * Sorts what someone holds into scopes to tick: their own account by `!user`, services and single servers one
 * by one, and what reaches others once by name, to be given a filter of `reaches`.
 */
export function scopeChoices(
  grantedScopes: ScopeSet,
  {
    reader,
    catalogue,
    serviceNames,
  }: {
    readonly reader: ScopeReader;
    readonly catalogue: ScopeCatalogue;
    /** Services to name to those who may open all. */
    readonly serviceNames: readonly string[];
  },
): ScopeChoices {
  const chosen = new Map<string, PlacedScope>();
  const reaches = new Set<string>();
  const reachKinds = new Set<ScopeFilterKind>();

  const offer = (scope: Scope, definition: ScopeDefinition) => {
    const text = formatScope(scope);
    if (!chosen.has(text))
      chosen.set(text, { scope: text, ...describeScope(scope, definition, reader) });
  };
  const offerOwn = (name: string, definition: ScopeDefinition) => {
    if (definition.own !== undefined) offer({ name, filter: { kind: 'user' } }, definition);
  };
  const offerReaching = (name: string, definition: ScopeDefinition, reach: string) => {
    offer({ name }, definition);
    if (!takesReach(name, definition)) return;
    reaches.add(reach);
    for (const kind of filterKindsOf(definition)) reachKinds.add(kind);
  };

  for (const text of grantedScopes) {
    const { scope } = readScope(text);
    const definition = scope && catalogue.get(scope.name);
    if (scope === undefined || definition === undefined || metascopes.has(scope.name)) continue;
    const { name, filter } = scope;
    if (name.startsWith('custom:')) offer(scope, definition);
    else if (filter === undefined) {
      offerReaching(name, definition, '');
      if (name !== 'access:services') continue;
      for (const value of serviceNames)
        offer({ name, filter: { kind: 'service', value } }, definition);
    } else if (!filterKindsOf(definition).includes(filter.kind)) continue;
    else if (filter.kind === 'user' && filter.value === reader.userName) offerOwn(name, definition);
    else if (filter.kind === 'server' || name === 'access:services') offer(scope, definition);
    else offerReaching(name, definition, text.slice(name.length));
  }

  const byGroup = Map.groupBy(chosen.values(), ({ group }) => group);
  return {
    groups: (Object.keys(scopeGroupTitles) as ScopeGroup[]).flatMap((group) => {
      const choices = byGroup.get(group);
      return choices === undefined ? [] : [{ group, choices: nested(choices, catalogue) }];
    }),
    reaches: [...reaches].sort(),
    reachKinds: [...reachKinds],
  };
}

let collator: Intl.Collator | undefined;

/** Made on first use: the data of languages stays in memory. */
function inWords(): Intl.Collator {
  collator ??= new Intl.Collator('en', { numeric: true });
  return collator;
}

/** Puts what another choice of the same filter brings along below it, and sorts the others as they are defined. */
function nested(scopes: readonly PlacedScope[], catalogue: ScopeCatalogue): ScopeChoice[] {
  const order = new Map(catalogue.names.map((name, index) => [name, index]));
  // The operator's own come before the single services, of which there may be many.
  const rank = (name: string) => (name.startsWith('custom:') ? -1 : (order.get(name) ?? 0));
  const split = scopes.map((placed) => {
    const end = placed.scope.indexOf('!');
    const name = end === -1 ? placed.scope : placed.scope.slice(0, end);
    return { placed, name, filter: placed.scope.slice(name.length) };
  });
  const tops: {
    readonly placed: PlacedScope;
    readonly name: string;
    readonly parts: ScopeChoice[];
  }[] = [];
  for (const same of Map.groupBy(split, ({ filter }) => filter).values()) {
    // What brings most along comes first, so that nothing stands above what it is a part of.
    const bySize = same.toSorted((one, other) => {
      const sizes = [one, other].map(({ name }) => catalogue.withSubscopes(name)?.length ?? 0);
      return (sizes[1] ?? 0) - (sizes[0] ?? 0) || rank(one.name) - rank(other.name);
    });
    const ownTops: typeof tops = [];
    for (const { placed, name } of bySize) {
      const above = ownTops.find((top) => catalogue.withSubscopes(top.name)?.includes(name));
      if (above === undefined) ownTops.push({ placed, name, parts: [] });
      else above.parts.push({ ...placed, parts: [] });
    }
    tops.push(...ownTops);
  }
  return tops
    .toSorted(
      (one, other) =>
        rank(one.name) - rank(other.name) ||
        Number(one.placed.scope.includes('!')) - Number(other.placed.scope.includes('!')) ||
        inWords().compare(String(one.placed.description), String(other.placed.description)),
    )
    .map(({ placed, parts }) => ({ ...placed, parts }));
}
