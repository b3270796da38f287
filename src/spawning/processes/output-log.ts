import { existsSync, fstatSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { makeDirectory } from '../../platform/files/make-directory.ts';
import { systemClock } from './clock.ts';
import { followedPrograms } from './open-files.ts';
import { createOutputFeed, type OutputFeed } from './output-feed.ts';
import { createLineSplitter } from './output-lines.ts';
import { rotateOutputFile } from './output-rotation.ts';
import type { SystemUser } from './system-user.ts';

export interface OutputLogOptions {
  readonly file: string;
  /** Size at which the file is moved away; default 10 MiB. */
  readonly maxFileBytes?: number;
  /** How many moved files are kept; default 3. */
  readonly oldFiles?: number;
  /** Lines kept in memory; default 200. */
  readonly tailLines?: number;
  /** Where they are kept in place of that; what an earlier program left there goes. */
  readonly feed?: OutputFeed | undefined;
  /** Secrets the program knows; they show as `[secret]` in lines, whatever the program prints. */
  readonly secrets?: readonly string[];
  /** Told each line; `isRemark` marks those that came by `note`. */
  readonly onLine?: (line: string, isRemark: boolean) => void;
}

/**
 * The output of one program: a file the program itself writes to, which the hub reads along.
 *
 * A file and not a pipe, because a program must neither end nor hang when the hub is killed, and must
 * go on being heard by the next hub.
 */
export interface OutputLog extends AsyncDisposable {
  readonly file: string;
  /** File descriptor to hand to the program as its stdout and stderr. */
  readonly descriptor: number;
  /** The last lines, oldest first. */
  tail(lines?: number): readonly string[];
  /** Reads what the program has written up to now. */
  flush(): Promise<void>;
  /** Adds a remark of the hub's own to the output. */
  note(text: string): Promise<void>;
  /** Lets a user's program reopen the file, as `echo > /dev/stderr` does. */
  giveTo(user: SystemUser): Promise<void>;
}

/**
 * Whether a program may ever have been started with this output file, by whatever hub: it is there
 * before the program is, and it stays.
 */
export function hasOutputLog(file: string): boolean {
  return existsSync(file);
}

const chunkBytes = 64 * 1024;
/** More than this unread at one poll is a flood: only its end is read, the rest stays in the file. */
const floodBytes = 512 * 1024;
/** Lines told to `onLine` in one poll; the file holds them all. */
const maxLinesPerPoll = 200;
const shortestPollMs = 100;
const maxPollMs = 2_000;

/** Looks at the logs of quiet programs, of which there may be thousands: one timer for all of them. */
const quietLooks = new Set<() => void>();
let quietTimer: NodeJS.Timeout | undefined;

function watchQuiet(look: () => void): void {
  quietLooks.add(look);
  quietTimer ??= setInterval(() => {
    for (const each of quietLooks) each();
  }, maxPollMs).unref();
}

function unwatchQuiet(look: () => void): void {
  quietLooks.delete(look);
  if (quietLooks.size > 0) return;
  clearInterval(quietTimer);
  quietTimer = undefined;
}

/** Opens (or goes on with) the output file of a program and follows it. */
export async function openOutputLog(options: OutputLogOptions): Promise<OutputLog> {
  const { file, maxFileBytes = 10 * 1024 * 1024, oldFiles = 3, tailLines = 200, onLine } = options;
  const secrets = (options.secrets ?? []).filter((secret) => secret !== '');
  await makeDirectory(dirname(file), 0o711);
  const handle = await open(file, 'a+', 0o600);
  followedPrograms.count += 1;

  const splitter = createLineSplitter();
  let { feed } = options;
  feed?.restart();
  /** Remarks of the hub that are in the file and were not read back yet. */
  const remarks: string[] = [];
  let offset = 0;
  let isClosed = false;
  let pollMs = shortestPollMs;
  let timer: NodeJS.Timeout | undefined;
  let polling: Promise<void> = Promise.resolve();

  /** How long ago the lines that are read were written; not at all, for those of a running program. */
  let ageMs = 0;

  function keep(line: string): string {
    const clean = secrets.reduce((text, secret) => text.replaceAll(secret, '[secret]'), line);
    feed ??= createOutputFeed({ maxLines: tailLines });
    feed.push(clean, ageMs);
    return clean;
  }

  async function readUpTo(end: number): Promise<string[]> {
    const fresh: string[] = [];
    // Not kept: hundreds of programs that print nothing would each hold one.
    const buffer = Buffer.allocUnsafe(Math.min(chunkBytes, Math.max(0, end - offset)));
    while (offset < end) {
      const { bytesRead } = await handle.read(
        buffer,
        0,
        Math.min(chunkBytes, end - offset),
        offset,
      );
      if (bytesRead === 0) break;
      offset += bytesRead;
      fresh.push(...splitter.push(buffer.subarray(0, bytesRead)).map(keep));
    }
    return fresh;
  }

  /** Skips the middle of a flood, which is too much for any reader. */
  function skipFlood(size: number): string[] {
    const unreadBytes = size - offset;
    if (unreadBytes <= floodBytes) return [];
    offset = size - chunkBytes;
    return noteSkipped(unreadBytes - chunkBytes);
  }

  function noteSkipped(bytes: number): string[] {
    return [
      ...splitter.end(),
      `[… ${bytes} ${bytes === 1 ? 'byte' : 'bytes'} of output not shown]`,
    ].map(keep);
  }

  function isRemark(line: string): boolean {
    const place = remarks.indexOf(line);
    // What stood before it was cut out of a flood.
    remarks.splice(0, place + 1);
    return place !== -1;
  }

  function tell(all: readonly string[]): void {
    const reported = all.map((line) => ({ line, isRemark: isRemark(line) }));
    if (onLine === undefined) return;
    for (const { line, isRemark } of reported.slice(0, maxLinesPerPoll)) onLine(line, isRemark);
    const unreported = reported.length - maxLinesPerPoll;
    if (unreported > 0)
      onLine(`[… ${unreported} ${unreported === 1 ? 'line' : 'lines'} not shown]`, false);
  }

  async function poll(): Promise<void> {
    const { size } = await handle.stat();
    // The file was emptied, for example by a program that opened /dev/stderr for writing.
    if (size < offset) offset = 0;
    if (size !== offset) pollMs = shortestPollMs;
    const fresh = [...skipFlood(size), ...(await readUpTo(size))];
    if (size >= maxFileBytes) {
      const late = await rotateOutputFile({ handle, file, offset, maxFileBytes, oldFiles });
      if (late.droppedBytes > 0) fresh.push(...noteSkipped(late.droppedBytes));
      fresh.push(...splitter.push(late.bytes).map(keep));
      offset = 0;
    }
    tell(fresh);
  }

  function flush(): Promise<void> {
    polling = polling.then(async () => {
      if (!isClosed) await poll();
    });
    return polling;
  }

  // Polling instead of fs.watch: it costs one fstat each time, is the same on every
  // file system, and a flooding program cannot turn it into a flood of events.
  function schedule(): void {
    if (isClosed) return;
    if (pollMs >= maxPollMs) {
      watchQuiet(look);
      return;
    }
    // The logs of many programs are looked at in one wake-up.
    timer = setTimeout(look, pollMs - (systemClock.monotonicMs() % pollMs)).unref();
  }

  function look(): void {
    const isStillQuiet = isQuiet();
    if (isStillQuiet && pollMs >= maxPollMs) return;
    unwatchQuiet(look);
    if (isStillQuiet) {
      pollMs *= 2;
      schedule();
      return;
    }
    flush()
      .catch((thrown: unknown) => keep(`[the output file cannot be read: ${String(thrown)}]`))
      .finally(schedule);
  }

  /** Whether nothing was written; of an open file the system knows at once, which a thread would take longer to tell. */
  function isQuiet(): boolean {
    try {
      return fstatSync(handle.fd).size === offset;
    } catch {
      return false;
    }
  }

  try {
    const { size, mtimeMs } = await handle.stat();
    offset = Math.max(0, size - chunkBytes);
    ageMs = Math.max(0, systemClock.now() - mtimeMs);
    await readUpTo(size);
    ageMs = 0;
  } catch (thrown) {
    followedPrograms.count -= 1;
    await handle.close();
    throw thrown;
  }
  schedule();

  return {
    file,
    descriptor: handle.fd,
    tail: (lines) => feed?.tail(lines) ?? [],
    flush,
    async note(text) {
      if (isClosed) return;
      const remark = `[hub] ${text}`;
      remarks.push(remark);
      await handle.appendFile(`${remark}\n`);
    },
    giveTo: ({ userId, groupId }) => handle.chown(userId, groupId),
    async [Symbol.asyncDispose]() {
      if (isClosed) return;
      await flush().catch(ignoreLastLook);
      isClosed = true;
      clearTimeout(timer);
      unwatchQuiet(look);
      tell(splitter.end().map(keep));
      await closeQuietly(handle);
      followedPrograms.count -= 1;
    },
  };
}

function ignoreLastLook(): void {
  // The file is given up either way.
}

async function closeQuietly(handle: FileHandle): Promise<void> {
  await handle.close().catch(ignoreLastLook);
}
