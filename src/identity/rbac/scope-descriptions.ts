import { type Phrase, text } from '../../platform/texts/text.ts';
import { readScope, type Scope, type ScopeFilter, splitServerValue } from './scope.ts';
import { metascopes, type ScopeCatalogue, type ScopeDefinition } from './scope-definitions.ts';
import type { ScopeGroup } from './scope-labels.ts';

/** What one scope allows, for people. */
export interface ScopeDescription {
  /** The scope as requested. */
  readonly scope: string;
  /** A short phrase without a full stop. */
  readonly description: Phrase;
  /** What it is restricted to, such as `only user alice`. */
  readonly restriction: Phrase | undefined;
}

/** The same with its place among others. */
export interface PlacedScope extends ScopeDescription {
  readonly group: ScopeGroup;
  /** What a holder could do with it beyond its words. */
  readonly risk: Phrase | undefined;
}

/** To whom scopes are described: what is theirs is called yours. */
export interface ScopeReader {
  readonly userName: string;
  /** What services are called on pages; by their names where it does not know them. */
  readonly titleOfService?: ((name: string) => Phrase | undefined) | undefined;
}

/**
 * Describes scopes for display. What another scope of the list brings along under the same
 * restriction is left out, and so are scopes the catalogue does not know.
 */
export function describeScopes(
  scopes: Iterable<string>,
  catalogue: ScopeCatalogue,
  reader?: ScopeReader,
): PlacedScope[] {
  const read = [...new Set(scopes)].flatMap((text) => {
    const { scope } = readScope(text);
    const definition = scope && catalogue.get(scope.name);
    return scope === undefined || definition === undefined ? [] : [{ text, scope, definition }];
  });
  return read
    .filter(({ scope }) => !read.some((other) => bringsAlong(other.scope, scope, catalogue)))
    .map(({ text, scope, definition }) => ({
      scope: text,
      ...describeScope(scope, definition, reader),
    }));
}

/** Describes one scope whose definition is known. */
export function describeScope(
  scope: Scope,
  definition: ScopeDefinition,
  reader?: ScopeReader,
): Omit<PlacedScope, 'scope'> {
  const { description, own, group, risk } = definition;
  const { name, filter } = scope;
  if (reader !== undefined && own !== undefined && isOwn(scope, reader)) {
    const isServer = filter?.kind === 'server';
    const restriction = isServer ? ownServer(filter.value) : undefined;
    return { description: own, restriction, group, risk: undefined };
  }
  if (name === 'access:services' && filter?.kind === 'service' && filter.value !== undefined) {
    const title = reader?.titleOfService?.(filter.value) ?? filter.value;
    const words = reader === undefined ? text`Open ${title}` : text`Open ${title} as you`;
    return { description: words, restriction: undefined, group, risk };
  }
  if (name === 'access:servers' && filter?.kind === 'server' && filter.value !== undefined) {
    return {
      description: openServer(filter.value),
      restriction: undefined,
      group: 'sharing',
      risk: undefined,
    };
  }
  const isAboutOthers = own !== undefined && !metascopes.has(name);
  return {
    description,
    restriction: restrictionOf(scope),
    group: isAboutOthers ? 'people' : group,
    risk,
  };
}

/** Whether a scope is about the reader's own account, servers or tokens. */
function isOwn({ name, filter }: Scope, { userName }: ScopeReader): boolean {
  if (metascopes.has(name)) return true;
  if (filter?.kind === 'user') return filter.value === undefined || filter.value === userName;
  return (
    filter?.kind === 'server' &&
    (filter.value === undefined || splitServerValue(filter.value).userName === userName)
  );
}

function ownServer(value: string | undefined): Phrase {
  const serverName = value === undefined ? undefined : splitServerValue(value).serverName;
  if (serverName === undefined) return text`only this server`;
  return serverName === '' ? text`only your default server` : text`only your server ${serverName}`;
}

function bringsAlong(outer: Scope, inner: Scope, catalogue: ScopeCatalogue): boolean {
  if (outer.name === inner.name) return false;
  if (catalogue.withSubscopes(outer.name)?.includes(inner.name) !== true) return false;
  return (
    outer.filter === undefined ||
    (outer.filter.kind === inner.filter?.kind && outer.filter.value === inner.filter.value)
  );
}

/** What a filter restricts a scope to, such as `only group staff`. */
export function restrictionOf({
  filter,
}: {
  readonly filter?: ScopeFilter | undefined;
}): Phrase | undefined {
  if (filter === undefined) return undefined;
  switch (filter.kind) {
    case 'user':
      return filter.value === undefined
        ? text`only their own account`
        : text`only user ${filter.value}`;
    case 'group':
      return text`only group ${filter.value ?? ''}`;
    case 'service':
      return filter.value === undefined
        ? text`only this service`
        : text`only service ${filter.value}`;
    case 'server':
      return filter.value === undefined ? text`only this server` : onlyServer(filter.value);
  }
}

function onlyServer(value: string): Phrase {
  const { userName, serverName } = splitServerValue(value);
  return serverName === ''
    ? text`only the default server of ${userName}`
    : text`only the server ${serverName} of ${userName}`;
}

function openServer(value: string): Phrase {
  const { userName, serverName } = splitServerValue(value);
  return serverName === ''
    ? text`Open the default server of ${userName}`
    : text`Open the server ${serverName} of ${userName}`;
}
