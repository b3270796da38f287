import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pid } from 'node:process';
import { createInterface } from 'node:readline';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { StartupError } from '../errors.ts';
import { findLockHolder, takeFileLock } from './file-lock.ts';

let directory: string;
let file: string;
const others: ChildProcess[] = [];
/** What a power failure left. */
const cutOff = 'no database'.repeat(50);
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'file-lock-'));
  file = join(directory, 'folder', 'some.lock');
});
afterEach(async () => {
  for (const other of others.splice(0)) other.kill('SIGKILL');
  await rm(directory, { recursive: true });
});

/** Another process, about to take the lock. */
interface Taker {
  readonly other: ChildProcess;
  /** Takes it; resolves with what the process says of that. */
  take(): Promise<string>;
}

/** `prelude` is code that runs in the other process before. */
async function createTaker(prelude = ''): Promise<Taker> {
  const script = `
    import fs from 'node:fs';
    import { syncBuiltinESMExports } from 'node:module';
    import { takeFileLock } from ${JSON.stringify(import.meta.resolve('./file-lock.ts'))};
    ${prelude}
    console.log('up');
    await new Promise((resolve) => process.stdin.once('data', resolve));
    try {
      await takeFileLock(${JSON.stringify(file)}, (holder) => 'held by ' + holder);
      console.log('taken');
    } catch (error) { console.log(error.name + ' ' + error.message); }
    setInterval(() => {}, 60_000);`;
  const other = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  others.push(other);
  const lines = createInterface(other.stdout)[Symbol.asyncIterator]();
  const nextLine = async () => String((await lines.next()).value);
  expect(await nextLine()).toBe('up');
  return {
    other,
    take() {
      other.stdin.write('go\n');
      return nextLine();
    },
  };
}

async function takeRemotely(prelude?: string) {
  const { other, take } = await createTaker(prelude);
  return { other, said: await take() };
}

const take = () => takeFileLock(file, (holder) => `held by ${holder}`);

test('a lock is refused to others while it is held, with the process that holds it', async () => {
  const lock = await take();
  expect((await takeRemotely()).said).toBe(`StartupError held by process ${pid}`);
  await expect(take()).rejects.toThrow(StartupError);
  await expect(take()).rejects.toThrow(`held by process ${pid}`);
  // To ask must not end it.
  expect(findLockHolder(file)).toBe(pid);
  expect((await takeRemotely()).said).toBe(`StartupError held by process ${pid}`);
  lock[Symbol.dispose]();
  lock[Symbol.dispose]();
  expect(findLockHolder(file)).toBeUndefined();
  expect((await takeRemotely()).said).toBe('taken');
});

test('a lock ends with the process that holds it, also by SIGKILL', async () => {
  const { other, said } = await takeRemotely();
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
  const { said } = await takeRemotely();
  expect(said).toBe('taken');
  const head = await readFile(file);
  head.writeInt32BE(1, 60);
  await writeFile(file, head);
  expect(findLockHolder(file)).toBeUndefined();
  await expect(take()).rejects.toThrow('held by another process');
});

test('of a process that has taken the lock and not yet written so, the pid is waited for', async () => {
  using _ = await take();
  const findsNoHolderFirst = `
    const { readSync } = fs;
    let heads = 0;
    fs.readSync = (descriptor, bytes, ...rest) => {
      const isHead = bytes.length === 100;
      return isHead && heads++ === 0 ? 0 : readSync(descriptor, bytes, ...rest);
    };
    syncBuiltinESMExports();`;
  const { said } = await takeRemotely(findsNoHolderFirst);
  expect(said).toBe(`StartupError held by process ${pid}`);
});

test.for(['absent', 'damaged'])(
  'of many that take a lock at once, one gets it: the file is %s',
  async (how) => {
    if (how === 'damaged') {
      await mkdir(dirname(file));
      await writeFile(file, cutOff);
    }
    const takers = await Promise.all(Array.from({ length: 6 }, () => createTaker()));
    const said = await Promise.all(takers.map((taker) => taker.take()));
    const winner = takers[said.indexOf('taken')]?.other.pid;
    // One that empties a damaged file may erase who has the lock since.
    const holder = how === 'absent' ? `process ${winner}` : '(another process|process \\d+)';
    expect(said.toSorted()).toEqual([
      ...Array(5).fill(expect.stringMatching(`^StartupError held by ${holder}$`)),
      'taken',
    ]);
  },
);

test('a lock file that is damaged is made again; one that cannot be made is told', async () => {
  (await take())[Symbol.dispose]();
  await writeFile(file, cutOff);
  (await take())[Symbol.dispose]();
  expect((await readFile(file)).subarray(0, 15).toString()).toBe('SQLite format 3');
  await expect(takeFileLock(join(file, 'below'), String)).rejects.toThrow(/lock .*below cannot/);
});
