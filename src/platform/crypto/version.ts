import { HubError } from '../errors.ts';
import { text } from '../texts/text.ts';
import { hashSecret } from './hash.ts';

/**
 * Throws `precondition_failed` when a change is meant for another version than this one, which is what there is now;
 * undefined when there is nothing. It is called where nobody else can change it before the change is made.
 */
export type RequireVersion = (version: string | undefined) => void;

/** For changes that are meant for whatever there is, or for nothing. */
export const anyVersion: RequireVersion = () => {};

/** For changes that are meant for whatever there is, and not to make something new. */
export const someVersion: RequireVersion = (version) => {
  if (version !== undefined) return;
  throw new HubError('precondition_failed', text`There is nothing to be changed any more.`, {
    hint: text`To make it, send the request without If-Match.`,
  });
};

/** For changes that are meant for one of these versions. */
export function oneOfVersions(versions: readonly string[]): RequireVersion {
  return (version) => {
    someVersion(version);
    if (versions.some((each) => each === version)) return;
    throw new HubError('precondition_failed', text`This has been changed since it was read.`, {
      hint: text`Read it again, and send the change with its new ETag.`,
    });
  };
}

/** Tells whether something has changed: two of the same content, as JSON, have the same version. */
export function versionOf(content: unknown): string {
  return hashSecret(JSON.stringify(content)).slice(0, 22);
}
