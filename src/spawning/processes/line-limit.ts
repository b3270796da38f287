/** Passes lines on, but no more than so many a second. */
export interface LineLimit extends Disposable {
  push(line: string): void;
}

const windowMs = 1_000;

/**
 * Of each second it passes the first lines on and then tells how many it kept back,
 * so that a program in a flood can be read, and fills neither a disk nor a reader's time.
 */
export function createLineLimit(options: {
  readonly linesPerSecond: number;
  readonly onLine: (line: string) => void;
  readonly onSuppressed: (lines: number) => void;
}): LineLimit {
  const { linesPerSecond, onLine, onSuppressed } = options;
  let passed = 0;
  let suppressed = 0;
  let timer: NodeJS.Timeout | undefined;

  function endWindow(): void {
    clearTimeout(timer);
    timer = undefined;
    const lines = suppressed;
    passed = 0;
    suppressed = 0;
    if (lines > 0) onSuppressed(lines);
  }

  return {
    push(line) {
      timer ??= setTimeout(endWindow, windowMs).unref();
      if (passed < linesPerSecond) {
        passed += 1;
        onLine(line);
      } else {
        suppressed += 1;
      }
    },
    [Symbol.dispose]: endWindow,
  };
}
