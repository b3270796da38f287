import { readScope, type Scope } from './scope.ts';
import type { ScopeCatalogue } from './scope-definitions.ts';

/** One line of a consent page. */
export interface ScopeDescription {
  /** The scope as requested. */
  readonly scope: string;
  readonly description: string;
  /** What it is restricted to, such as `only user alice`. */
  readonly restriction: string | undefined;
}

/**
 * Describes scopes for display. What another scope of the list brings along under the same
 * restriction is left out, and so are scopes the catalogue does not know.
 */
export function describeScopes(
  scopes: Iterable<string>,
  catalogue: ScopeCatalogue,
): ScopeDescription[] {
  const read = [...new Set(scopes)].flatMap((text) => {
    const { scope } = readScope(text);
    const definition = scope && catalogue.get(scope.name);
    return scope === undefined || definition === undefined ? [] : [{ text, scope, definition }];
  });
  return read
    .filter(({ scope }) => !read.some((other) => bringsAlong(other.scope, scope, catalogue)))
    .map(({ text, scope, definition }) => ({
      scope: text,
      description: definition.description,
      restriction: restriction(scope),
    }));
}

function bringsAlong(outer: Scope, inner: Scope, catalogue: ScopeCatalogue): boolean {
  if (outer.name === inner.name) return false;
  if (catalogue.withSubscopes(outer.name)?.includes(inner.name) !== true) return false;
  return (
    outer.filter === undefined ||
    (outer.filter.kind === inner.filter?.kind && outer.filter.value === inner.filter.value)
  );
}

function restriction({ filter }: Scope): string | undefined {
  if (filter === undefined) return undefined;
  switch (filter.kind) {
    case 'user':
      return filter.value === undefined ? 'only your own account' : `only user ${filter.value}`;
    case 'group':
      return `only group ${filter.value}`;
    case 'service':
      return filter.value === undefined ? 'only this service' : `only service ${filter.value}`;
    case 'server':
      return filter.value === undefined ? 'only this server' : `only server ${filter.value}`;
  }
}
