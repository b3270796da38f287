import type { HeaderEdits } from '../../platform/protocol/identity-headers.ts';

/** What a route changes of headers, ready to be done. */
export interface CompiledEdits {
  /** In lower case: what is removed, and what is set in place of what there was. */
  readonly dropped: ReadonlySet<string>;
  /** Names and values in turn. */
  readonly added: readonly string[];
}

/** Undefined where nothing is changed. */
export function compileEdits(edits: HeaderEdits | undefined): CompiledEdits | undefined {
  const added = Object.entries(edits?.set ?? {}).flat();
  const removed = [...Object.keys(edits?.set ?? {}), ...(edits?.remove ?? [])];
  const dropped = new Set(removed.map((name) => name.toLowerCase()));
  return dropped.size === 0 ? undefined : { dropped, added };
}

/** Headers, as names and values in turn, with what a route changes of them. */
export function withEdits(pairs: readonly string[], { dropped, added }: CompiledEdits): string[] {
  return [...withoutNames(pairs, dropped), ...added];
}

/** Leaves out headers by their names in lower case. */
export function withoutNames(pairs: readonly string[], names: ReadonlySet<string>): string[] {
  const kept: string[] = [];
  for (let index = 0; index + 1 < pairs.length; index += 2) {
    const name = pairs[index] ?? '';
    if (!names.has(name.toLowerCase())) kept.push(name, pairs[index + 1] ?? '');
  }
  return kept;
}
