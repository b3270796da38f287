import {
  appendFile,
  mkdtemp,
  open,
  readdir,
  readFile,
  rm,
  stat,
  truncate,
  utimes,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { createOutputFeed } from './output-feed.ts';
import { openOutputLog } from './output-log.ts';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'output-log-'));
});
afterEach(async () => {
  vi.useRealTimers();
  await rm(directory, { recursive: true });
});

describe('the output log', () => {
  test('reads along what others append and keeps the last lines', async () => {
    const file = join(directory, 'deep', 'app.log');
    const reported: string[] = [];
    await using output = await openOutputLog({
      file,
      tailLines: 2,
      onLine: (line) => reported.push(line),
    });
    await appendFile(file, 'one\ntwo\nthr');
    await output.flush();
    expect(output.tail()).toEqual(['one', 'two']);
    await appendFile(file, 'ee\n');
    await output.flush();
    expect(output.tail()).toEqual(['two', 'three']);
    expect(output.tail(1)).toEqual(['three']);
    expect(reported).toEqual(['one', 'two', 'three']);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
  });

  test('takes what it finds for as old as the file', async () => {
    const file = join(directory, 'app.log');
    await appendFile(file, 'of an earlier hub\n');
    await utimes(file, 1_000, 1_000);
    const feed = createOutputFeed();
    await using output = await openOutputLog({ file, feed });
    await appendFile(file, 'of this one\n');
    await output.flush();
    const { lines } = await feed.read(undefined, undefined, 86_400);
    expect(lines).toEqual(['of this one']);
    expect(output.tail()).toEqual(['of an earlier hub', 'of this one']);
  });

  test('goes on following those that have been quiet, also when one of them is closed', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] });
    const other = await openOutputLog({ file: join(directory, 'other.log') });
    const file = join(directory, 'app.log');
    for (const text of ['at last', 'once more']) {
      const line = Promise.withResolvers<string>();
      const output = await openOutputLog({ file, onLine: line.resolve });
      await vi.advanceTimersByTimeAsync(60_000);
      await appendFile(file, `${text}\n`);
      await vi.advanceTimersByTimeAsync(2_000);
      expect(await line.promise).toBe(text);
      await output[Symbol.asyncDispose]();
    }
    await other[Symbol.asyncDispose]();
    expect(vi.getTimerCount()).toBe(0);
  });

  test('follows the file without being asked', async () => {
    const file = join(directory, 'app.log');
    const line = Promise.withResolvers<string>();
    await using _output = await openOutputLog({ file, onLine: line.resolve });
    await appendFile(file, 'hello\n');
    expect(await line.promise).toBe('hello');
  });

  test('goes on with the file of a former hub: old lines are in the tail, but not told again', async () => {
    const file = join(directory, 'app.log');
    await appendFile(file, 'old\n');
    const reported: string[] = [];
    await using output = await openOutputLog({ file, onLine: (line) => reported.push(line) });
    expect(output.tail()).toEqual(['old']);
    await appendFile(file, 'new\n');
    await output.flush();
    expect(output.tail()).toEqual(['old', 'new']);
    expect(reported).toEqual(['new']);
  });

  test('hides secrets that a program prints', async () => {
    const file = join(directory, 'app.log');
    await using output = await openOutputLog({ file, secrets: ['hub_s3cret', ''] });
    await appendFile(file, 'HUB_API_TOKEN=hub_s3cret!\n');
    await output.flush();
    expect(output.tail()).toEqual(['HUB_API_TOKEN=[secret]!']);
  });

  test('moves a full file away, keeps a number of old ones, and loses no line', async () => {
    const file = join(directory, 'app.log');
    const reported: string[] = [];
    await using output = await openOutputLog({
      file,
      maxFileBytes: 100,
      oldFiles: 2,
      onLine: (line) => reported.push(line),
    });
    // Opened once, as a program would have it: it must go on at the start of the emptied file.
    await using program = await open(file, 'a');
    const written = Array.from({ length: 8 }, (_, index) => `line ${index} ${'.'.repeat(52)}`);
    for (const line of written) {
      await program.write(`${line}\n`);
      await output.flush();
    }
    expect(reported).toEqual(written);
    expect((await readdir(directory)).sort()).toEqual(['app.log', 'app.log.1', 'app.log.2']);
    expect(await readFile(file, 'utf8')).toBe('');
    expect(await readFile(`${file}.1`, 'utf8')).toBe(`${written.slice(6).join('\n')}\n`);
    expect(await readFile(`${file}.2`, 'utf8')).toBe(`${written.slice(4, 6).join('\n')}\n`);
  });

  test('jumps over a flood, says so, and keeps its end', async () => {
    // It looks only when asked to, not in the middle of what is written.
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] });
    const file = join(directory, 'app.log');
    const reported: string[] = [];
    await using output = await openOutputLog({ file, onLine: (line) => reported.push(line) });
    await appendFile(file, `${'x'.repeat(99)}\n`.repeat(20_000));
    await appendFile(file, 'the end\n');
    await output.flush();
    expect(output.tail(1)).toEqual(['the end']);
    expect(reported[0]).toMatch(/^\[… \d+ bytes of output not shown\]$/);
    expect(reported.length).toBeLessThanOrEqual(201);
    expect(reported.at(-1)).toMatch(/^\[… \d+ lines not shown\]$/);
  });

  test('starts over when the file is emptied', async () => {
    const file = join(directory, 'app.log');
    await using output = await openOutputLog({ file });
    await appendFile(file, 'before, a longer line\n');
    await output.flush();
    await truncate(file);
    await appendFile(file, 'after\n');
    await output.flush();
    expect(output.tail()).toEqual(['before, a longer line', 'after']);
  });

  test('adds remarks of the hub, and tells an unfinished last line when it closes', async () => {
    const file = join(directory, 'app.log');
    const reported: (string | boolean)[][] = [];
    const output = await openOutputLog({ file, onLine: (...line) => reported.push(line) });
    await output.note('exited with code 1');
    await appendFile(file, 'no newline');
    await output[Symbol.asyncDispose]();
    expect(output.tail()).toEqual(['[hub] exited with code 1', 'no newline']);
    expect(reported).toEqual([
      ['[hub] exited with code 1', true],
      ['no newline', false],
    ]);
  });
});
