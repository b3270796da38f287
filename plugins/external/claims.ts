import type { ClaimedInfo } from '../../src/plugin/plugin.ts';

/** What a provider says of a person: the claims of an ID token, or the answer of a user endpoint. */
export type Claims = Readonly<Record<string, unknown>>;

const maxListLength = 1000;

/**
 * Finds a claim by its dotted path, such as `realm_access.roles`. A name that itself holds dots, such
 * as `https://example.org/groups`, is found too.
 */
export function claimAt(claims: Claims, path: string): unknown {
  if (Object.hasOwn(claims, path)) return claims[path];
  for (let dot = path.indexOf('.'); dot !== -1; dot = path.indexOf('.', dot + 1)) {
    const head = path.slice(0, dot);
    const inner = Object.hasOwn(claims, head) ? claims[head] : undefined;
    if (isClaims(inner)) {
      const found = claimAt(inner, path.slice(dot + 1));
      if (found !== undefined) return found;
    }
  }
  return undefined;
}

/** A claim that is text with something in it; undefined for anything else. */
export function textAt(claims: Claims, path: string): string | undefined {
  const value = claimAt(claims, path);
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** A stable id: text or a whole number. */
export function idAt(claims: Claims, path: string): string | undefined {
  const value = claimAt(claims, path);
  return Number.isSafeInteger(value) ? String(value) : textAt(claims, path);
}

/**
 * A claim that lists names: an array of texts, or one text. Undefined when it is missing or holds
 * anything else, so that the caller knows that it cannot decide by it.
 */
export function listAt(claims: Claims, path: string): readonly string[] | undefined {
  const value = claimAt(claims, path);
  if (typeof value === 'string') return value === '' ? [] : [value];
  if (!Array.isArray(value) || value.length > maxListLength) return undefined;
  return value.every((item) => typeof item === 'string') ? value : undefined;
}

/** Who the person is beside the name, by the standard claims (OpenID Connect Core 1.0 §5.1) and those of Git forges. */
export function infoOf(claims: Claims): ClaimedInfo {
  const parts = [textAt(claims, 'given_name'), textAt(claims, 'family_name')];
  const joined = parts.filter((part) => part !== undefined).join(' ');
  return {
    displayName: textAt(claims, 'name') ?? (joined === '' ? undefined : joined),
    email: textAt(claims, 'email'),
    isEmailVerified: claims['email_verified'] === true,
    pictureUrl: textAt(claims, 'picture') ?? textAt(claims, 'avatar_url'),
  };
}

/** The domain of an e-mail address that the provider has verified; undefined when in any doubt. */
export function verifiedDomain(claims: Claims): string | undefined {
  if (claims['email_verified'] !== true) return undefined;
  const email = textAt(claims, 'email');
  // One @ only: `a@evil.example@example.org` is read differently by different programs.
  const match = /^[^\s@"]+@([a-z0-9-]+(?:\.[a-z0-9-]+)+)$/i.exec(email ?? '');
  return match?.[1]?.toLowerCase();
}

export function isClaims(value: unknown): value is Claims {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
