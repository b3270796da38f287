import { monotonicMs } from '../concurrency/monotonic-clock.ts';
import { HubError } from '../errors.ts';
import { type CanonicalPath, canonicalPath, decodePath } from '../http/canonical-path.ts';
import { createRoute, type Route, type RouteDefinition } from './route.ts';

/** What a path means to the gateway. */
export type RouteMatch =
  /** Send it upstream under `path`, query included. */
  | { readonly kind: 'forward'; readonly route: Route; readonly path: string }
  /** The prefix without its slash: redirect with 308, which keeps method and body, to `path`. */
  | { readonly kind: 'redirect'; readonly route: Route; readonly path: string }
  /** Two readers could find two different routes: answer 400. */
  | { readonly kind: 'ambiguous' };

/** The proxy table: longest prefix by decoded segment. */
export interface RouteTable {
  /** Finds the route of a path; undefined when the path is the hub's own or no one's. */
  match(path: CanonicalPath): RouteMatch | undefined;
  /** Adds a route; throws `conflict` when the prefix is taken. */
  add(definition: RouteDefinition): Route;
  /** Adds a route, in place of the one with the same prefix if there is one. */
  replace(definition: RouteDefinition): Route;
  /** Removes a route and tells whether there was one. */
  remove(prefix: string): boolean;
  /** Says whether the upstream of a route can answer. */
  setReady(prefix: string, isReady: boolean): void;
  find(prefix: string): Route | undefined;
  list(): Route[];
  /** Called with each route that is removed or replaced, and by what. Returns how to stop listening. */
  onRemove(listener: (route: Route, replacement: Route | undefined) => void): () => void;
  /** Called with the prefix of each route that is added, changed or removed. Returns how to stop listening. */
  onChange(listener: (prefix: string) => void): () => void;
}

interface Node {
  readonly children: Map<string, Node>;
  /** `hub` marks what belongs to the hub itself, whatever routes stand above it. */
  entry: Route | 'hub' | undefined;
}

const ambiguous: RouteMatch = { kind: 'ambiguous' };

/** Paths under a reserved prefix are never routed. */
export function createRouteTable(
  options: {
    readonly reservedPrefixes?: readonly string[];
    /** Of every route; see `RouteDefinition`. */
    readonly sessionIdAliases?: readonly string[];
    /** Milliseconds on a monotonic clock. */
    readonly now?: () => number;
  } = {},
): RouteTable {
  const { reservedPrefixes = [], sessionIdAliases, now = monotonicMs } = options;
  const root = createNode();
  const routes = new Map<string, Route>();
  const listeners = new Set<(route: Route, replacement: Route | undefined) => void>();
  const changeListeners = new Set<(prefix: string) => void>();

  for (const prefix of reservedPrefixes) nodeAt(root, prefixSegments(prefix)).entry = 'hub';

  function put(definition: RouteDefinition): Route {
    const segments = prefixSegments(definition.prefix);
    const route = createRoute({ sessionIdAliases, ...definition }, now());
    const node = nodeAt(root, segments);
    if (node.entry === 'hub') throw new TypeError(`the prefix ${definition.prefix} is reserved`);
    node.entry = route;
    routes.set(segments.join('/'), route);
    return route;
  }

  function announceChange(prefix: string): void {
    for (const listener of changeListeners) listener(prefix);
  }

  const find = (prefix: string) => routes.get(prefixSegments(prefix).join('/'));

  function announceRemoval(route: Route, replacement?: Route): void {
    for (const listener of listeners) listener(route, replacement);
  }

  return {
    match: (path) => matchPath(root, path),
    add(definition) {
      if (find(definition.prefix) !== undefined) {
        throw new HubError('conflict', `There is a route for ${definition.prefix} already.`);
      }
      const route = put(definition);
      announceChange(route.prefix);
      return route;
    },
    replace(definition) {
      const former = find(definition.prefix);
      const route = put(definition);
      if (former !== undefined) {
        route.lastActivityMs = former.lastActivityMs;
        announceRemoval(former, route);
      }
      announceChange(route.prefix);
      return route;
    },
    remove(prefix) {
      const segments = prefixSegments(prefix);
      const key = segments.join('/');
      const route = routes.get(key);
      if (route === undefined) return false;
      routes.delete(key);
      removeEntry(root, segments);
      announceRemoval(route);
      announceChange(route.prefix);
      return true;
    },
    setReady(prefix, isReady) {
      const route = find(prefix);
      if (route === undefined || route.isReady === isReady) return;
      route.isReady = isReady;
      announceChange(route.prefix);
    },
    find,
    list: () => [...routes.values()],
    onRemove(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    onChange(listener) {
      changeListeners.add(listener);
      return () => changeListeners.delete(listener);
    },
  };
}

function matchPath(root: Node, path: CanonicalPath): RouteMatch | undefined {
  const { pathname, target, isPlain } = path;
  let node: Node | undefined = root;
  let entry = root.entry;
  let entryEnd = 1;
  let isWithoutSlash = false;
  let start = 1;
  while (node !== undefined) {
    const slashAt = pathname.indexOf('/', start);
    const end = slashAt === -1 ? pathname.length : slashAt;
    const segment = pathname.slice(start, end);
    node = node.children.get(isPlain ? segment : (decodePath(segment) ?? segment));
    if (node?.entry !== undefined) {
      entry = node.entry;
      entryEnd = end + 1;
      isWithoutSlash = slashAt === -1;
    }
    if (slashAt === -1) break;
    start = end + 1;
  }
  if (!isPlain && entry !== loosestEntry(root, pathname)) return ambiguous;
  if (entry === undefined || entry === 'hub') return undefined;

  const { prefix } = entry;
  if (isWithoutSlash) {
    return { kind: 'redirect', route: entry, path: prefix + target.slice(pathname.length) };
  }
  const forwarded = target.startsWith(prefix) ? target : prefix + target.slice(entryEnd);
  return { kind: 'forward', route: entry, path: forwarded };
}

/** What a reader would find that takes `%2f` for a slash and skips empty segments. */
function loosestEntry(root: Node, pathname: string): Node['entry'] {
  let node: Node | undefined = root;
  let { entry } = root;
  for (const segment of (decodePath(pathname) ?? '').split('/')) {
    if (segment === '') continue;
    node = node.children.get(segment);
    if (node === undefined) break;
    if (node.entry !== undefined) entry = node.entry;
  }
  return entry;
}

function prefixSegments(prefix: string): string[] {
  const path = canonicalPath(prefix);
  const decoded = path?.pathname === prefix ? decodePath(prefix) : undefined;
  if (decoded === undefined || !prefix.endsWith('/')) {
    throw new TypeError(
      `${prefix} is not a route prefix: a canonical path with a slash at both ends`,
    );
  }
  if (prefix === '/') return [];
  const segments = decoded.slice(1, -1).split('/');
  if (segments.includes('') || segments.length !== prefix.split('/').length - 2) {
    throw new TypeError(`${prefix} is not a route prefix: empty segment or encoded slash`);
  }
  return segments;
}

function createNode(): Node {
  return { children: new Map(), entry: undefined };
}

function nodeAt(root: Node, segments: readonly string[]): Node {
  let node = root;
  for (const segment of segments) {
    let child = node.children.get(segment);
    if (child === undefined) {
      child = createNode();
      node.children.set(segment, child);
    }
    node = child;
  }
  return node;
}

function removeEntry(root: Node, segments: readonly string[]): void {
  const path = [root];
  for (const segment of segments) {
    const child = path.at(-1)?.children.get(segment);
    if (child === undefined) return;
    path.push(child);
  }
  const last = path.at(-1);
  if (last !== undefined) last.entry = undefined;
  for (let depth = segments.length; depth > 0; depth--) {
    const node = path[depth];
    if (node === undefined || node.entry !== undefined || node.children.size > 0) return;
    path[depth - 1]?.children.delete(segments[depth - 1] ?? '');
  }
}
