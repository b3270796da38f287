import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pid } from 'node:process';
import { createInterface } from 'node:readline';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { StartupError } from '../errors.ts';
import { findLockHolder, takeFileLock } from './file-lock.ts';

let directory: string;
let file: string;
const others: ChildProcess[] = [];
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'file-lock-'));
  file = join(directory, 'folder', 'some.lock');
});
afterEach(async () => {
  for (const other of others.splice(0)) other.kill('SIGKILL');
  await rm(directory, { recursive: true });
});

/** Takes the lock in another process; resolves with what that says of it. */
async function takeElsewhere(): Promise<{ readonly other: ChildProcess; readonly said: string }> {
  const script = `
    import { takeFileLock } from ${JSON.stringify(import.meta.resolve('./file-lock.ts'))};
    try {
      await takeFileLock(${JSON.stringify(file)}, (holder) => 'held by ' + holder);
      console.log('taken');
    } catch (error) { console.log(error.name + ' ' + error.message); }
    setInterval(() => {}, 60_000);`;
  const other = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  others.push(other);
  const [said] = await once(createInterface(other.stdout), 'line');
  return { other, said: String(said) };
}

const take = () => takeFileLock(file, (holder) => `held by ${holder}`);

test('a lock is refused to others while it is held, with the process that holds it', async () => {
  const lock = await take();
  expect((await takeElsewhere()).said).toBe(`StartupError held by process ${pid}`);
  await expect(take()).rejects.toThrow(StartupError);
  await expect(take()).rejects.toThrow(`held by process ${pid}`);
  // To ask must not end it.
  expect(findLockHolder(file)).toBe(pid);
  expect((await takeElsewhere()).said).toBe(`StartupError held by process ${pid}`);
  lock[Symbol.dispose]();
  lock[Symbol.dispose]();
  expect(findLockHolder(file)).toBeUndefined();
  expect((await takeElsewhere()).said).toBe('taken');
});

test('a lock ends with the process that holds it, also by SIGKILL', async () => {
  const { other, said } = await takeElsewhere();
  expect(said).toBe('taken');
  expect(findLockHolder(file)).toBe(other.pid);
  await expect(take()).rejects.toThrow(`held by process ${other.pid}`);
  other.kill('SIGKILL');
  await once(other, 'exit');
  expect(findLockHolder(file)).toBeUndefined();
  using _ = await take();
  expect(findLockHolder(file)).toBe(pid);
});

test('a process that only has the pid of the holder is not taken for it', async () => {
  const { said } = await takeElsewhere();
  expect(said).toBe('taken');
  const head = await readFile(file);
  head.writeInt32BE(1, 60);
  await writeFile(file, head);
  expect(findLockHolder(file)).toBeUndefined();
  await expect(take()).rejects.toThrow('held by another process');
});

test('of many that take a lock at once, one gets it', async () => {
  const said = (await Promise.all(Array.from({ length: 6 }, takeElsewhere))).map(
    (each) => each.said,
  );
  expect(said.filter((each) => each === 'taken')).toHaveLength(1);
  expect(said.filter((each) => /held by process \d+$/.test(each))).toHaveLength(5);
});

test('a lock file that is damaged is made again; one that cannot be made is told', async () => {
  (await take())[Symbol.dispose]();
  await writeFile(file, 'cut off by a power failure'.repeat(20));
  (await take())[Symbol.dispose]();
  expect((await readFile(file)).subarray(0, 15).toString()).toBe('SQLite format 3');
  await expect(takeFileLock(join(file, 'below'), String)).rejects.toThrow(/lock .*below cannot/);
});
