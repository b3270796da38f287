import { HubError } from '../../platform/errors.ts';
import {
  type CanonicalPath,
  canonicalPath,
  decodePath,
  withoutPrefix,
} from '../../platform/http/request-address.ts';
import { text } from '../../platform/texts/text.ts';
import { createRoute, type Route, type RouteDefinition } from './route.ts';

/** What a path means to the gateway. */
export type RouteMatch =
  /** Send it upstream under `path`, query included. */
  | { readonly kind: 'forward'; readonly route: Route; readonly path: string }
  /** The prefix without its slash: redirect with 308, which keeps method and body, to `path`. */
  | { readonly kind: 'redirect'; readonly route: Route; readonly path: string }
  /** The host is that of routes, and none of them has the path: answer 404. */
  | { readonly kind: 'nowhere' }
  /** Two readers could find two different routes: answer 400. */
  | { readonly kind: 'ambiguous' };

/** The proxy table: by host name, then longest prefix by decoded segment. Keys are those of `Route`. */
export interface RouteTable {
  /**
   * Finds the route of a path; undefined when the path is the hub's own or no one's. `host` is the name that was
   * asked for, in lower case and without port: one that has routes has no others.
   */
  match(path: CanonicalPath, host?: string): RouteMatch | undefined;
  /** Whether any route is for one host name alone. */
  readonly hasHosts: boolean;
  /** Whether a host name, in lower case and without port, has routes of its own. */
  hasHost(host: string): boolean;
  /** Adds a route; throws `conflict` when host and prefix are taken. */
  add(definition: RouteDefinition): Route;
  /** Adds a route, in place of the one with the same key if there is one. */
  replace(definition: RouteDefinition): Route;
  /** Removes a route and tells whether there was one. */
  remove(key: string): boolean;
  /** Says whether the upstream of a route can answer. */
  setReady(key: string, isReady: boolean): void;
  find(key: string): Route | undefined;
  list(): Route[];
  /** Called with each route that is removed or replaced, and by what. Returns how to stop listening. */
  onRemove(listener: (route: Route, replacement: Route | undefined) => void): () => void;
  /** Called with the key of each route that is added, changed or removed. Returns how to stop listening. */
  onChange(listener: (key: string) => void): () => void;
}

interface Node {
  readonly children: Map<string, Node>;
  /** `hub` marks what belongs to the hub itself, whatever routes stand above it. */
  entry: Route | 'hub' | undefined;
}

const ambiguous: RouteMatch = { kind: 'ambiguous' };
const nowhere: RouteMatch = { kind: 'nowhere' };

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
  const { reservedPrefixes = [], sessionIdAliases, now = () => performance.now() } = options;
  const root = createNode();
  /** Of host names that have routes of their own. */
  const roots = new Map<string, Node>();
  const routes = new Map<string, Route>();
  const listeners = new Set<(route: Route, replacement: Route | undefined) => void>();
  const changeListeners = new Set<(key: string) => void>();

  for (const prefix of reservedPrefixes) nodeAt(root, prefixSegments(prefix)).entry = 'hub';

  function put(definition: RouteDefinition, former?: Route): Route {
    const { host, prefix } = definition;
    const segments = prefixSegments(prefix);
    const route = createRoute({ sessionIdAliases, ...definition }, now(), former?.load);
    const node = nodeAt(rootOf(host), segments);
    if (node.entry === 'hub') throw new TypeError(`the prefix ${prefix} is reserved`);
    node.entry = route;
    routes.set(nameOf(route.key), route);
    return route;
  }

  function rootOf(host: string | undefined): Node {
    if (host === undefined) return root;
    let own = roots.get(host);
    if (own === undefined) {
      own = createNode();
      roots.set(host, own);
    }
    return own;
  }

  function announceChange(key: string): void {
    for (const listener of changeListeners) listener(key);
  }

  const find = (key: string) => routes.get(nameOf(key));

  function announceRemoval(route: Route, replacement?: Route): void {
    for (const listener of listeners) listener(route, replacement);
  }

  return {
    match(path, host) {
      const own = host === undefined ? undefined : roots.get(host);
      return own === undefined ? matchPath(root, path) : (matchPath(own, path) ?? nowhere);
    },
    get hasHosts() {
      return roots.size > 0;
    },
    hasHost: (host) => roots.has(host),
    add(definition) {
      const key = (definition.host ?? '') + definition.prefix;
      if (find(key) !== undefined) {
        throw new HubError('conflict', text`There is a route for ${key} already.`);
      }
      const route = put(definition);
      announceChange(route.key);
      return route;
    },
    replace(definition) {
      const former = find((definition.host ?? '') + definition.prefix);
      const route = put(definition, former);
      if (former !== undefined) {
        route.lastActivityMs = former.lastActivityMs;
        route.lastUseMs = former.lastUseMs;
        announceRemoval(former, route);
      }
      announceChange(route.key);
      return route;
    },
    remove(key) {
      const route = find(key);
      if (route === undefined) return false;
      const { host, prefix } = route;
      routes.delete(nameOf(key));
      const own = rootOf(host);
      removeEntry(own, prefixSegments(prefix));
      if (host !== undefined && own.entry === undefined && own.children.size === 0) {
        roots.delete(host);
      }
      announceRemoval(route);
      announceChange(route.key);
      return true;
    },
    setReady(key, isReady) {
      const route = find(key);
      if (route === undefined || route.isReady === isReady) return;
      route.isReady = isReady;
      announceChange(route.key);
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
  // The instance that it is passed on to strips it.
  if (entry.stripsPrefix && entry.via === undefined) {
    const rest = target.slice(target.startsWith(prefix) ? prefix.length : entryEnd);
    const path = withoutPrefix(rest);
    return path === undefined ? ambiguous : { kind: 'forward', route: entry, path };
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

/** One name for all spellings of a key. Throws TypeError for text that is no key. */
function nameOf(key: string): string {
  const slashAt = key.indexOf('/');
  return key.slice(0, slashAt + 1) + prefixSegments(key.slice(slashAt)).join('/');
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
