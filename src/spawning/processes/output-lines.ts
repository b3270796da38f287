import { StringDecoder } from 'node:string_decoder';
import { stripVTControlCharacters } from 'node:util';

/** Longest line that is kept, in characters; the rest of a longer one is dropped. */
const maxLineLength = 4_096;

export interface LineSplitter {
  /** Takes the next bytes and returns the lines they complete. */
  push(chunk: Uint8Array): string[];
  /** Returns the unfinished last line, if any, and starts afresh. */
  end(): string[];
}

/**
 * Splits a program's output into lines of bounded length, free of control characters,
 * so that no output can fill the memory or drive the terminal in which the log is read.
 */
export function createLineSplitter(): LineSplitter {
  // Most programs are quiet: only for those that print anything is there one.
  let decoder: StringDecoder | undefined;
  // Holds at most one character more than a line may have: the one that tells it was cut.
  let pending = '';

  function append(text: string): void {
    if (pending.length <= maxLineLength) pending = (pending + text).slice(0, maxLineLength + 1);
  }

  function complete(): string {
    const isCut = pending.length > maxLineLength;
    const line = cleanLine(isCut ? `${pending.slice(0, maxLineLength)}…` : pending);
    pending = '';
    return line;
  }

  return {
    push(chunk) {
      decoder ??= new StringDecoder('utf8');
      const parts = decoder.write(chunk).split('\n');
      const unfinished = parts.pop() ?? '';
      const lines = parts.map((part) => {
        append(part);
        return complete();
      });
      append(unfinished);
      return lines;
    },
    end() {
      append(decoder?.end() ?? '');
      decoder = undefined;
      return pending === '' ? [] : [complete()];
    },
  };
}

/** Removes terminal sequences and control characters, which have no place in a log. */
function cleanLine(line: string): string {
  return stripVTControlCharacters(line).replaceAll(
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g,
    '',
  );
}
