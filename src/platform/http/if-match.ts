import { anyVersion, oneOfVersions, type RequireVersion, someVersion } from '../crypto/version.ts';

/** The versions that a change is meant for, by the value of `If-Match` (RFC 9110 §13.1.1); any without one. */
export function readIfMatch(value: string | undefined): RequireVersion {
  const wanted = value?.trim() ?? '';
  if (wanted === '') return anyVersion;
  if (wanted === '*') return someVersion;
  // A weak tag is never equal here (RFC 9110 §8.8.3.2).
  const tags = wanted.split(',').map((tag) => /^"(.*)"$/.exec(tag.trim())?.[1]);
  return oneOfVersions(tags.filter((tag) => tag !== undefined));
}

/** The value of `ETag` for a version. */
export function writeETag(version: string): string {
  return `"${version}"`;
}
