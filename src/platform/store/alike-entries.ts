import type { AuditRow } from './tables.ts';

/**
 * What makes entries of the audit log alike. The rest of an entry may differ, and is kept of each of them: people
 * choose names and notes as they like, so that what floods the log need not be equal.
 */
export const alikeBy = [
  'actor_kind',
  'actor_name',
  'action',
  'target_kind',
  'target_name',
  'result',
] as const satisfies readonly (keyof AuditRow)[];

const ownFields = [
  'session_id',
  'token_id',
  'address',
  'target_part',
  'instance',
] as const satisfies readonly (keyof AuditRow)[];

/** So many entries alike are kept one by one in about a minute; those beyond are merged. */
export const maxAlike = 10;
/** Characters of what one entry keeps of others. */
const maxRepeatsLength = 256 * 1024;
/** Entries that wait to be merged. */
const maxEntries = 5_000;
const windowMs = 60_000;

/** What an entry has of its own beside the one that stands for it. */
export type AuditRepeat = { readonly at: number; readonly detail?: object } & Partial<
  Pick<AuditRow, (typeof ownFields)[number]>
>;

/** The same for entries alike; undefined for one that is kept by itself. */
export function alikeKey(row: AuditRow): string | undefined {
  if (row.users !== null && row.users !== undefined) return undefined;
  return isMerged(row) ? undefined : JSON.stringify(alikeBy.map((name) => row[name] ?? null));
}

function isMerged({ entry_count: count = 1 }: AuditRow): boolean {
  return count > 1;
}

/** Makes as few entries as possible of some that are alike: each is like the newest of those that it stands for. */
export function mergeAlike(rows: readonly AuditRow[]): AuditRow[] {
  const merged: AuditRow[] = [];
  let rest = rows;
  while (rest.length > 0) {
    const [newest] = rest.slice(-1) as [AuditRow];
    const repeats: string[] = [];
    let length = 0;
    for (const row of rest.toReversed()) {
      const repeat = JSON.stringify(repeatOf(row, newest));
      length += repeat.length;
      if (repeats.length > 0 && length > maxRepeatsLength) break;
      repeats.unshift(repeat);
    }
    rest = rest.slice(0, -repeats.length);
    const one = { entry_count: repeats.length, repeats: `[${repeats.join(',')}]` };
    merged.unshift(repeats.length === 1 ? newest : { ...newest, ...one });
  }
  return merged;
}

function repeatOf(row: AuditRow, newest: AuditRow): AuditRepeat {
  const own = ownFields.filter((name) => (row[name] ?? null) !== (newest[name] ?? null));
  return {
    at: row.at,
    ...Object.fromEntries(own.map((name) => [name, row[name] ?? null])),
    ...(row.detail !== newest.detail && { detail: JSON.parse(row.detail) as object }),
  };
}

/** The entries for which one stands, oldest first; itself where that is the only one. */
export function entriesOf<Entry extends AuditRow>(entry: Entry): Entry[] {
  if (entry.repeats === null || entry.repeats === undefined) return [entry];
  const repeats = JSON.parse(entry.repeats) as AuditRepeat[];
  return repeats.map(({ detail, ...own }) => ({
    ...entry,
    ...own,
    ...(detail !== undefined && { detail: JSON.stringify(detail) }),
    entry_count: 1,
    repeats: null,
  }));
}

/** Passes entries on as they come, but merges those of which there are many alike. */
export interface AlikeEntries extends Disposable {
  add(row: AuditRow): void;
}

export function createAlikeEntries(write: (row: AuditRow) => void): AlikeEntries {
  let seen = new Map<string, { passed: number; held: AuditRow[] }>();
  let held = 0;
  let timer: NodeJS.Timeout | undefined;

  function endWindow(): void {
    clearTimeout(timer);
    timer = undefined;
    const ended = seen;
    seen = new Map();
    held = 0;
    for (const each of ended.values()) for (const row of mergeAlike(each.held)) write(row);
  }

  return {
    add(row) {
      const key = alikeKey(row);
      if (key === undefined) return write(row);
      const alike = seen.get(key) ?? { passed: 0, held: [] };
      seen.set(key, alike);
      timer ??= setTimeout(endWindow, windowMs).unref();
      if (alike.passed < maxAlike) {
        alike.passed += 1;
        write(row);
      } else {
        alike.held.push(row);
        held += 1;
      }
      if (held + seen.size >= maxEntries) endWindow();
    },
    [Symbol.dispose]: endWindow,
  };
}
