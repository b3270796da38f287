import { HubError } from '../errors.ts';
import { text } from '../texts/text.ts';

/** Where a page of the audit log ends: the next one begins after it, whatever is recorded meanwhile. */
export interface AuditPlace {
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly id: number;
}

/** A time in ISO 8601; a day alone is its beginning in UTC. Undefined for anything else. */
export function readTime(text: string): Date | undefined {
  if (!/^\d{4}-\d\d-\d\d(?:T[\d:.]{5,15}(?:Z|[+-]\d\d:\d\d))?$/.test(text)) return undefined;
  const read = new Date(text);
  return Number.isNaN(read.getTime()) ? undefined : read;
}

/** A place as text for an address. */
export function writePlace({ at, id }: AuditPlace): string {
  return `${at}-${id}`;
}

/** Throws `bad_request` for what is no place. */
export function readPlace(written: string): AuditPlace {
  const [, at, id] = /^(\d{1,15})-(\d{1,15})$/.exec(written) ?? [];
  if (at !== undefined && id !== undefined) return { at: Number(at), id: Number(id) };
  throw new HubError('bad_request', text`Invalid query: after: is no place in the audit log.`, {
    hint: text`Send what \`next\` of the page before says.`,
  });
}
