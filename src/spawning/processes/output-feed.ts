import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { HubError } from '../../platform/errors.ts';
import { isSamePhrase, type Phrase } from '../../platform/texts/text.ts';

/** A place in the output of a program. */
export interface OutputPosition {
  /** Id of the run of lines that are numbered on; another one begins with each start of a program. */
  readonly stream: string;
  /** Number of the next line, from 0. */
  readonly next: number;
}

/** Lines of output. */
export interface OutputPart {
  /** Oldest first. */
  readonly lines: readonly string[];
  /** Lines before these that are not kept any more. */
  readonly skipped: number;
  /** Whether they follow on the position that was asked for; else they begin another run of lines. */
  readonly isContinued: boolean;
  /** From which to read on. */
  readonly position: OutputPosition;
}

/** Where output is read and followed, whichever instance of the hub keeps it. */
export interface OutputSource {
  /**
   * The lines after a position, or the last ones: `max` of them at most, and none that came earlier than
   * `withinSeconds` ago. Throws `unavailable` when the instance that keeps them does not answer.
   */
  read(after?: OutputPosition, max?: number, withinSeconds?: number): Promise<OutputPart>;
  /** Calls a listener when there are more lines, as far as that is known here. Returns how to stop. */
  onMore(listener: () => void): () => void;
}

/** The last lines of one program's output, in memory. */
export interface OutputFeed extends OutputSource {
  /** `ageMs`: how long ago it was written. */
  push(line: string, ageMs?: number): void;
  /** The last lines, so many at most, and of so many characters. */
  tail(lines?: number, characters?: number): readonly string[];
  /** Forgets all lines: those that come next begin another run of them. */
  restart(): void;
}

/** Lines that are kept of one program, and that one answer has. */
export const maxOutputLines = 1_000;
const maxTotalCharacters = 256 * 1024;

export function createOutputFeed({
  maxLines = maxOutputLines,
  maxCharacters = maxTotalCharacters,
  now = () => performance.now(),
} = {}): OutputFeed {
  const listeners = new Set<() => void>();
  let stream = randomUUID();
  let lines: string[] = [];
  /** When each was written, by a clock that is not set. */
  let times: number[] = [];
  let characters = 0;
  /** Number of the first line that is kept. */
  let first = 0;

  function shorten(): void {
    let excess = 0;
    while (lines.length - excess > maxLines || characters > maxCharacters) {
      characters -= lines[excess]?.length ?? 0;
      excess += 1;
    }
    if (excess === 0) return;
    lines.splice(0, excess);
    times.splice(0, excess);
    first += excess;
  }

  return {
    push(line, ageMs = 0) {
      lines.push(line);
      times.push(now() - ageMs);
      characters += line.length;
      shorten();
      for (const listener of listeners) listener();
    },
    tail(count = maxLines, maxTotalCharacters = maxCharacters) {
      let from = lines.length;
      let left = maxTotalCharacters;
      while (from > Math.max(0, lines.length - count)) {
        left -= lines[from - 1]?.length ?? 0;
        if (left < 0) break;
        from -= 1;
      }
      return lines.slice(from);
    },
    restart() {
      stream = randomUUID();
      lines = [];
      times = [];
      characters = 0;
      first = 0;
      for (const listener of listeners) listener();
    },
    async read(after, max = maxLines, withinSeconds = Number.POSITIVE_INFINITY) {
      const next = first + lines.length;
      const isContinued = after?.stream === stream && after.next <= next;
      const earliest = now() - withinSeconds * 1000;
      const recent = times.findIndex((time) => time >= earliest);
      const firstRecent = recent === -1 ? next : first + recent;
      const from = Math.max(isContinued ? after.next : 0, firstRecent, next - max);
      return {
        lines: lines.slice(from - first),
        skipped: isContinued ? from - after.next : 0,
        isContinued,
        position: { stream, next },
      };
    },
    onMore(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}

/** What a follower of output is told. */
export interface OutputEvent {
  readonly lines: readonly string[];
  /** Lines between these and those before that came too fast to be kept. */
  readonly skipped?: number;
  /** Whether what was told before is of an earlier run. */
  readonly restarted?: true;
  /** Why there is nothing for the moment; it goes on when there is. */
  readonly problem?: Phrase;
}

/** How often a source is read of which another instance keeps the lines. */
const readAgainMs = 1_000;
/** A program may write a line a millisecond; a follower gets them together. */
const minPauseMs = 100;

/**
 * The last lines of output and then those that come, until the signal. Nothing waits in memory for a slow reader, who
 * is told how many lines were skipped.
 */
export async function* followOutput(
  source: OutputSource,
  { signal, lines }: { readonly signal: AbortSignal; readonly lines?: number | undefined },
): AsyncGenerator<OutputEvent> {
  let position: OutputPosition | undefined;
  let problem: Phrase | undefined;
  while (!signal.aborted) {
    using more = listenForMore(source, signal);
    try {
      const part = await source.read(position, position === undefined ? lines : undefined);
      const isFirst = position === undefined;
      const isRestarted = !isFirst && !part.isContinued;
      if (isFirst || isRestarted || part.lines.length > 0 || problem !== undefined) {
        yield {
          lines: part.lines,
          ...(part.skipped > 0 && { skipped: part.skipped }),
          ...(isRestarted && { restarted: true }),
        };
      }
      ({ position } = part);
      problem = undefined;
    } catch (error) {
      if (!(error instanceof HubError)) throw error;
      const said = error.shown.message;
      if (!isSamePhrase(said, problem)) yield { lines: [], problem: said };
      problem = said;
    }
    await sleep(minPauseMs, undefined, { signal }).catch(() => undefined);
    await more.come;
  }
}

/** Begins to listen before a source is read, so that nothing is missed in between. */
function listenForMore(
  source: OutputSource,
  signal: AbortSignal,
): Disposable & { come: Promise<void> } {
  const { promise: come, resolve } = Promise.withResolvers<void>();
  const stop = source.onMore(resolve);
  const timer = setTimeout(resolve, readAgainMs);
  const onAbort = () => resolve();
  signal.addEventListener('abort', onAbort);
  if (signal.aborted) resolve();
  return {
    come,
    [Symbol.dispose]() {
      stop();
      clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
    },
  };
}
