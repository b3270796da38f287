import type { RouteRule } from '../../platform/config/route-rules-schema.ts';
import {
  createTrustedPeer,
  decodePath,
  type TrustedPeer,
} from '../../platform/http/request-address.ts';

/** Who may pass, by the rules of a route. */
export interface RuleVerdict {
  readonly allow: 'everyone' | 'users' | 'nobody';
  /** Groups of which a user must be in one. */
  readonly groups?: readonly string[] | undefined;
}

/** What rules are asked about. */
export interface RuledRequest {
  readonly method: string;
  /** Path below the prefix of the route, with a slash before it: still encoded, without its query. */
  readonly path: string;
  /** Of the client. */
  readonly address: string;
}

/** The rules of a route, ready to be asked. */
export interface RouteRules {
  /** `ambiguous`: readers of the path could come to different verdicts. */
  judge(request: RuledRequest): RuleVerdict | 'ambiguous';
}

interface Pattern {
  readonly segments: readonly string[];
  /** Whether it means everything below, too. */
  readonly isTree: boolean;
}

interface CompiledRule {
  readonly verdict: RuleVerdict;
  readonly exact: readonly Pattern[] | undefined;
  /** The same, as the loosest reader would compare them. */
  readonly loose: readonly Pattern[] | undefined;
  readonly methods: ReadonlySet<string> | undefined;
  readonly isFrom: TrustedPeer | undefined;
}

const users: RuleVerdict = { allow: 'users' };

/**
 * Compiles rules. A path is read as it is written, and again as loosely as applications read paths: with encoded
 * slashes for slashes, twice decoded, in one case, without parameters, empty segments and dots at the end. Where that makes a difference the request is
 * `ambiguous`, so that no spelling of a path gets around its rule.
 */
export function compileRules(rules: readonly RouteRule[]): RouteRules {
  const compiled = rules.map(compileRule);

  function verdictOf(
    segments: readonly string[],
    isLoose: boolean,
    { method, address }: RuledRequest,
  ): RuleVerdict {
    for (const { exact, loose, methods, isFrom, verdict } of compiled) {
      const patterns = isLoose ? loose : exact;
      if (methods?.has(method) === false) continue;
      if (isFrom?.(address) === false) continue;
      if (patterns === undefined || patterns.some((pattern) => isMatch(pattern, segments))) {
        return verdict;
      }
    }
    return users;
  }

  return {
    judge(request) {
      const once = decodePath(request.path);
      if (once === undefined) return 'ambiguous';
      const twice = decodePath(once) ?? once;
      if (climbs.test(once) || climbs.test(twice)) return 'ambiguous';
      const written = segmentsOf(request.path).map((text) => decodePath(text) ?? text);
      const verdict = verdictOf(written, false, request);
      for (const reading of twice === once ? [once] : [once, twice]) {
        if (!isSame(verdict, verdictOf(segmentsOf(loosened(reading)), true, request))) {
          return 'ambiguous';
        }
      }
      return verdict;
    },
  };
}

/** A rule and the earlier one that leaves nothing to it, by their places. */
export interface UselessRule {
  readonly index: number;
  readonly earlier: number;
}

/** Finds rules that cannot match: an earlier one matches all that they would. */
export function findUselessRules(rules: readonly RouteRule[]): UselessRule[] {
  return rules.flatMap((rule, index) => {
    const earlier = rules.slice(0, index).findIndex((other) => covers(other, rule));
    return earlier === -1 ? [] : [{ index, earlier }];
  });
}

function covers(earlier: RouteRule, later: RouteRule): boolean {
  return (
    coversList(earlier.methods, later.methods, (one, other) => one === other) &&
    coversList(earlier.client_addresses, later.client_addresses, coversRange) &&
    coversList(earlier.paths, later.paths, coversPath)
  );
}

/** Whether each entry of the later list is covered by one of the earlier; no list means all there is. */
function coversList(
  earlier: readonly string[] | undefined,
  later: readonly string[] | undefined,
  isCovering: (one: string, other: string) => boolean,
): boolean {
  if (earlier === undefined) return true;
  return later?.every((other) => earlier.some((one) => isCovering(one, other))) ?? false;
}

function coversPath(one: string, other: string): boolean {
  const [wide, narrow] = [patternOf(loosened(one)), patternOf(loosened(other))];
  return narrow.isTree && !wide.isTree ? false : isMatch(wide, narrow.segments);
}

function coversRange(one: string, other: string): boolean {
  const [address = '', length] = other.split('/');
  const [, ownLength = address.includes(':') ? '128' : '32'] = one.split('/');
  const isNarrower = length === undefined || Number(length) >= Number(ownLength);
  return isNarrower && createTrustedPeer([one])(address);
}

function compileRule(rule: RouteRule): CompiledRule {
  const { allow, groups, paths, methods, client_addresses } = rule;
  return {
    verdict: { allow, ...(groups !== undefined && { groups }) },
    exact: paths?.map(patternOf),
    loose: paths?.map((path) => patternOf(loosened(path))),
    methods: methods && new Set(methods.includes('GET') ? [...methods, 'HEAD'] : methods),
    isFrom: client_addresses && createTrustedPeer(client_addresses),
  };
}

function patternOf(path: string): Pattern {
  const isTree = path.endsWith('/*');
  return { segments: segmentsOf(isTree ? path.slice(0, -2) : path), isTree };
}

/** Segments of a path, without the slash at its end. */
function segmentsOf(path: string): string[] {
  const segments = path.split('/').slice(1);
  if (segments.at(-1) === '') segments.pop();
  return segments;
}

function isMatch({ segments, isTree }: Pattern, path: readonly string[]): boolean {
  if (isTree ? path.length < segments.length : path.length !== segments.length) return false;
  return segments.every((segment, index) => segment === path[index]);
}

/** Dot segments and backslashes. */
const climbs = /[\x00-\x1f\\]|\/\.{1,2}(?:;[^/]*)?(?:\/|$)/;

/** Looks back, so that each of many dots in a row is not a beginning of its own, which takes its square. */
const endOfSegment = /(?<![. ])[. ]+(?=\/|$)/g;

/** A decoded path as the loosest reader takes it; one that is as loose already stays as it is. */
function loosened(path: string): string {
  return path
    .normalize('NFKC')
    .toLowerCase()
    .replaceAll(/;[^/]*/g, '')
    .replaceAll(endOfSegment, '')
    .replaceAll(/\/{2,}/g, '/');
}

function isSame(one: RuleVerdict, other: RuleVerdict): boolean {
  return one === other || (one.allow === other.allow && isSameList(one.groups, other.groups));
}

function isSameList(one: readonly string[] = [], other: readonly string[] = []): boolean {
  return one.length === other.length && one.every((item, index) => item === other[index]);
}
